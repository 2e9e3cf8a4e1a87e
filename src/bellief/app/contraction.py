"""The value posterior that an agent's belief implies, by the joint belief and by the paper's Gaussian."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from bellief.beliefs import tabular
from bellief.envs import Environment
from bellief.evaluation.dense_belief import draw_mdps
from bellief.induction import evaluate as induction
from bellief.induction import method1
from bellief.mdp import bellman
from bellief.values import gaussian

DISCOUNT = 0.99
JOINT_MDPS, DRAWS = 400, 400
# The paper's number of MDPs, and steps after which less than a thousandth of the value's weight is left.
GAUSSIAN_MDPS = 10
LOOKAHEAD = math.ceil(math.log(1e-3) / math.log(DISCOUNT))
# With more states a frame would take longer than anybody watches.
MOST_STATES = 12


class Values(NamedTuple):
    """Draws of the start value by both beliefs."""

    joint: Float[np.ndarray, "N"]
    gaussian: Float[np.ndarray, "N"]


class Contraction:
    """What an agent that has seen so much must think of one policy: the best one of the true model."""

    def __init__(self, environment: Environment):
        model = environment.mdp(DISCOUNT)
        actions = np.asarray(bellman.policy_iteration(jax.tree.map(jnp.asarray, model)).actions)
        self.start = np.asarray(environment.outcomes.start, dtype=np.float64)
        self.policy = np.eye(environment.actions)[actions]
        paid = environment.outcomes.reward[environment.outcomes.probability > 0]
        self.span = float(np.ptp(paid)) / (1 - DISCOUNT)
        with jax.enable_x64(True):
            exact = bellman.evaluate_exact(_double(model), jnp.asarray(self.policy))
        self.truth = float(self.start @ np.asarray(exact))

    def values(self, belief: tabular.TabularBelief, seed: int) -> Values:
        """Both posteriors of the start value under a belief."""
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            joint, other = _values(
                jax.random.key(seed), _double(belief), jnp.asarray(self.policy), jnp.asarray(self.span, float)
            )
            return Values(np.asarray(joint) @ self.start, np.asarray(other) @ self.start)


def belief_of(state: Any, run: int = 0) -> tabular.TabularBelief | None:
    """The belief about a table in an agent's state, of one run; None where the agent has none."""
    belief = getattr(state, "belief", None)
    if not isinstance(belief, tabular.TabularBelief):
        return None
    return jax.tree.map(lambda leaf: np.asarray(leaf[run]), belief)


def _double(tree: Any) -> Any:
    def widen(leaf: Any) -> Any:
        array = np.asarray(leaf)
        return jnp.asarray(array, np.float64 if array.dtype.kind == "f" else array.dtype)

    return jax.tree.map(widen, tree)


@functools.partial(jax.jit)
def _values(
    key: Key[Array, ""], belief: tabular.TabularBelief, policy: Float[Array, "S A"], span: Float[Array, ""]
) -> tuple[Float[Array, "N S"], Float[Array, "N S"]]:
    """Draws of the value function: the values of sampled MDPs, and of psi_1 after Method 1 on the first ten of them."""
    mdps = draw_mdps(key, JOINT_MDPS, belief, DISCOUNT, tabular.PAPER_PRIOR, None)
    joint = jax.vmap(bellman.evaluate_exact, in_axes=(0, None))(mdps, policy)
    few = jax.tree.map(lambda leaf: leaf[:GAUSSIAN_MDPS], mdps)
    step_key, draw_key = jax.random.split(jax.random.fold_in(key, 1))
    found = induction.by_method1(step_key, method1.Settings(), few, policy, LOOKAHEAD, span, "zero")
    return joint, gaussian.sample(draw_key, found.belief.belief, DRAWS)
