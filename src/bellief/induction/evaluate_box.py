"""Policy evaluation by inferential induction in continuous MDPs (the paper's Algorithm 2): values at given states.

What comes out are draws from the value posterior; with the joint belief one per sampled model, which rollouts of the
same models check.

>>> import jax, jax.numpy as jnp
>>> from bellief.features import parse
>>> from bellief.induction import evaluate_box
>>> from bellief.mdp.linear_mdp import Form, LinearGaussianMDP
>>> line, box = parse("constant+raw", 1), jnp.array([[-1.0], [1.0]])
>>> form, stays = Form("difference", line, line), lambda state: jnp.array(0.0)
>>> still = LinearGaussianMDP(jnp.zeros((1, 2, 1)), jnp.zeros((1, 1, 1)), jnp.array([[0.0, 1.0]]), jnp.array(0.0), box)
>>> models = jax.tree.map(lambda leaf: leaf[None], still)  # nothing moves, and s is paid for being in s
>>> settings = evaluate_box.Settings(line, horizon=2, discount=0.5, ridge=1e-6)
>>> problem = evaluate_box.Problem(models, box, jnp.linspace(-1, 1, 8)[:, None])
>>> always, here = lambda state: jnp.ones(1), jnp.array([[0.5]])
>>> found = evaluate_box.evaluate(jax.random.key(0), settings, form, problem, always, stays, here)
>>> exact = evaluate_box.by_roll_outs(jax.random.key(0), settings, form, models, always, stays, here, count=2)
>>> round(found.item(), 3), round(exact.item(), 3)  # 0.5 + 0.5 * 0.5
(0.75, 0.75)
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.errors import UserError
from bellief.features import Features
from bellief.induction import continuous
from bellief.mdp.linear_mdp import Form, LinearGaussianMDP
from bellief.values import linear_values

Policy = Callable[[Float[Array, "D"]], Float[Array, "A"]]
Ends = Callable[[Float[Array, "D"]], Float[Array, ""]]


@dataclasses.dataclass(frozen=True)
class Settings:
    """How values are fitted. `values` is `joint` or `gaussian`; the others are those of the agent `bbi`."""

    features: Features
    horizon: int = 20
    discount: float = 0.99
    values: str = "joint"
    ridge: float = 0.01
    sigma: float = 1.0
    samples: int = 50
    utility_samples: int = 10
    utility_states: int = 20

    def __post_init__(self):
        if self.values not in ("joint", "gaussian"):
            raise UserError(f"There is no value belief '{self.values}' here; choose joint or gaussian.")


class Problem(NamedTuple):
    """Sampled models (leading axis J), the box that features refer to, and the states that values are fitted at."""

    models: LinearGaussianMDP
    bounds: Float[Array, "2 D"]
    states: Float[Array, "N D"]


def evaluate(
    key: Key[Array, ""],
    settings: Settings,
    form: Form,
    problem: Problem,
    policy: Policy,
    end_probability: Ends,
    queries: Float[Array, "n D"],
    limits: continuous.RewardRange | None = None,
    normals: Float[Array, "N D"] | None = None,
) -> Float[Array, "draws n"]:
    """Draws of the policy's values at `queries` over the next `horizon` steps: J with `joint`, `samples` otherwise.

    `normals` are the noise of the step from each state, drawn if not given.
    """
    models, bounds, states = problem
    noise_key, induction_key, draw_key = jax.random.split(key, 3)
    if normals is None:
        normals = jax.random.normal(noise_key, states.shape, states.dtype)
    following = continuous.next_states(form, models, states, normals)
    ahead = continuous.look_ahead(form, models, states, following, end_probability, settings.features, bounds)
    if limits is not None:
        ahead = continuous.limit_rewards(ahead, limits)
    design = linear_values.make_design(_describe(settings, bounds, states), settings.ridge)
    # Probabilities in the states themselves, and in those that every model and action leads to.
    here = continuous.over_states(policy, states).T
    there = continuous.over_states(policy, following)
    there = jnp.moveaxis(there.reshape(there.shape[0], -1, there.shape[-1]), 1, 2)

    def follow(columns, _):
        return there if columns.ndim == 3 else here[:, : columns.shape[-1]]

    if settings.values == "joint" and limits is None:
        weights = continuous.by_policy(design, ahead, there, settings.horizon, settings.discount)
    elif settings.values == "joint":
        weights = continuous.by_joint(design, ahead, follow, settings.horizon, settings.discount, limits)
    else:
        belief, _ = continuous.by_gaussian(
            induction_key,
            design,
            ahead,
            follow,
            settings.horizon,
            settings.discount,
            limits,
            jnp.asarray(settings.sigma, states.dtype),
            settings.samples,
            settings.utility_samples,
            min(settings.utility_states, states.shape[0]),
        )
        weights = linear_values.sample(draw_key, belief, settings.samples)
    columns = _describe(settings, bounds, queries).T
    return jnp.sum((weights @ columns) * continuous.over_states(policy, queries).T, axis=1)


def by_roll_outs(
    key: Key[Array, ""],
    settings: Settings,
    form: Form,
    models: LinearGaussianMDP,
    policy: Policy,
    end_probability: Ends,
    queries: Float[Array, "n D"],
    count: int,
) -> Float[Array, "J n"]:
    """The oracle: mean return of `count` rollouts (an even number, in mirrored pairs) of every model and state."""

    def one(one_key, model, state):
        def value(rollout_key, sign):
            horizon, discount = settings.horizon, settings.discount
            return continuous.roll_out(
                rollout_key, form, model, state, policy, end_probability, horizon, discount, sign
            )

        signs = jnp.array([1.0, -1.0], state.dtype)
        pairs = jax.vmap(jax.vmap(value, in_axes=(None, 0)), in_axes=(0, None))
        return jnp.mean(pairs(jax.random.split(one_key, count // 2), signs))

    keys = jax.random.split(key, (models.end_reward.shape[0], queries.shape[0]))
    over_queries = jax.vmap(one, in_axes=(0, None, 0))
    return jax.vmap(over_queries, in_axes=(0, 0, None))(keys, models, queries)


def _describe(settings: Settings, bounds, states) -> Float[Array, "n F"]:
    return jax.vmap(lambda state: settings.features(state, bounds))(states)
