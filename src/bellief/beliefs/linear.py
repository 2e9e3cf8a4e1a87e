"""The belief about a continuous MDP: a matrix-normal inverse-Wishart regression of the transition and a normal-inverse-
gamma regression of the reward for each action, in constant memory.

Deviation: a step that ends an episode often pays something else (a fall costs 1, everything else nothing), which no
smooth function of the state describes. With `split_rewards` such rewards have a normal-inverse-gamma belief of their
own, without features; `split_rewards=False` is the paper's single regression.

>>> import jax, jax.numpy as jnp
>>> from bellief.beliefs import linear
>>> from bellief.features import parse
>>> from bellief.types import BoxSpaces, Transition
>>> form = linear.make_form("difference", parse("constant+raw", 1), parse("constant", 1))
>>> prior = linear.named_prior("paper")
>>> spaces = BoxSpaces(1, 2, (-1.0,), (1.0,), False, None, None)
>>> belief = linear.init(prior, form, spaces)
>>> step = Transition(jnp.array([0.5]), jnp.array(0), jnp.array(1.0), jnp.array([0.4]), jnp.array(False))
>>> belief = linear.update(form, belief, step)
>>> isinstance(prior, linear.Prior), isinstance(belief, linear.LinearBelief)
(True, True)
>>> linear.sample(jax.random.key(0), belief).transition.shape, linear.mean(belief).reward.shape
((2, 2, 1), (2, 1))
>>> away = step._replace(next_state=jnp.array([5.0]))
>>> bool(linear.log_predictive(form, belief, step) > linear.log_predictive(form, belief, away))
True
"""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.beliefs import matrix_normal
from bellief.beliefs.matrix_normal import Regression
from bellief.errors import UserError, require
from bellief.features import Features
from bellief.mdp.linear_mdp import DYNAMICS, Form, LinearGaussianMDP
from bellief.types import BoxSpaces, Transition


@dataclasses.dataclass(frozen=True)
class Prior:
    """Psi_0 = scale I and nu_0 = the dimension, as printed; the rest of the paper's prior is inverse-gamma(1/2, 1/2)
    noise of the reward. M_0 = 0 and K_0 = precision I are not printed. `more_degrees` are added to nu_0.
    """

    precision: float = 0.001
    scale: float = 0.001
    reward_precision: float = 0.001
    reward_shape: float = 0.5
    reward_rate: float = 0.5
    more_degrees: float = 0.0

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not (0 < value < math.inf or (field.name == "more_degrees" and value == 0)):
                raise UserError(f"prior.{field.name} must be a positive number, not {value}.")


PAPER_PRIOR = Prior()
# Rewards of one or zero would drown in noise of variance one and weights of variance a thousand.
OWN_PRIOR = Prior(reward_precision=1.0, reward_rate=0.005)


PRIORS = {"paper": PAPER_PRIOR, "own": OWN_PRIOR}


def named_prior(name: str) -> Prior:
    """The prior called `name`."""
    require(name in PRIORS, f"There is no prior '{name}' for continuous states; choose one of {', '.join(PRIORS)}.")
    return PRIORS[name]


class LinearBelief(NamedTuple):
    """One regression of each kind for every action, one for what ends pay, and the box that features refer to."""

    transitions: Regression
    rewards: Regression
    ends: Regression
    bounds: Float[Array, "2 D"]


def make_form(dynamics: str, features: Features, reward_features: Features) -> Form:
    """The shared form of models, with the name of the dynamics checked."""
    require(dynamics in DYNAMICS, f"There are no dynamics '{dynamics}'; choose one of {', '.join(DYNAMICS)}.")
    return Form(dynamics, features, reward_features)


def init(prior: Prior, form: Form, spaces: BoxSpaces) -> LinearBelief:
    """The prior. Where a dimension's bounds are not known, features measure it in units of one."""
    dimension = spaces.dimension
    transitions = matrix_normal.init(
        form.features.size(dimension), dimension, prior.precision, prior.scale, dimension + prior.more_degrees
    )
    noise = (prior.reward_precision, 2 * prior.reward_rate, 2 * prior.reward_shape)
    rewards = matrix_normal.init(form.reward_features.size(dimension), 1, *noise)

    def for_each_action(belief: Regression) -> Regression:
        return jax.tree.map(lambda leaf: jnp.tile(leaf, (spaces.actions, *(1,) * leaf.ndim)), belief)

    low = [-1.0 if value is None else value for value in spaces.low]
    high = [1.0 if value is None else value for value in spaces.high]
    return LinearBelief(
        for_each_action(transitions),
        for_each_action(rewards),
        matrix_normal.init(1, 1, *noise),
        jnp.array([low, high], float),
    )


def update(form: Form, belief: LinearBelief, transition: Transition, split_rewards: bool = True) -> LinearBelief:
    """Account for one transition."""
    state, action = transition.state, transition.action
    target = transition.next_state - state if form.dynamics == "difference" else transition.next_state
    reward = transition.reward[None]
    ended = transition.terminated if split_rewards else jnp.array(False)
    return LinearBelief(
        _update_row(belief.transitions, action, form.features(state, belief.bounds), target, jnp.array(True)),
        _update_row(belief.rewards, action, form.reward_features(state, belief.bounds), reward, ~ended),
        _where(ended, matrix_normal.update(belief.ends, jnp.ones(1, reward.dtype), reward), belief.ends),
        belief.bounds,
    )


def _where(condition, new: Regression, old: Regression) -> Regression:
    return jax.tree.map(lambda one, two: jnp.where(condition, one, two), new, old)


def _update_row(beliefs: Regression, row, x, y, condition) -> Regression:
    old = jax.tree.map(lambda leaf: leaf[row], beliefs)
    new = _where(condition, matrix_normal.update(old, x, y), old)
    return jax.tree.map(lambda leaf, one: leaf.at[row].set(one), beliefs, new)


def sample(key: Key[Array, ""], belief: LinearBelief) -> LinearGaussianMDP:
    """One model from the posterior. Its rewards are draws of the mean reward."""
    transition_key, reward_key, end_key = jax.random.split(key, 3)

    def draw(one_key, beliefs, size):
        keys = jax.random.split(one_key, beliefs.degrees.shape[0])
        return jax.vmap(lambda own, regression: matrix_normal.sample(own, regression, size))(keys, beliefs)

    lines = draw(transition_key, belief.transitions, belief.transitions.root.shape[-1] - belief.bounds.shape[1])
    rewards = draw(reward_key, belief.rewards, belief.rewards.root.shape[-1] - 1).weights[..., 0]
    end = matrix_normal.sample(end_key, belief.ends, 1).weights[0, 0]
    return LinearGaussianMDP(lines.weights, lines.noise_root, rewards, end, belief.bounds)


def mean(belief: LinearBelief) -> LinearGaussianMDP:
    """The model of mean weights."""
    features = belief.transitions.root.shape[-1] - belief.bounds.shape[1]
    reward_features = belief.rewards.root.shape[-1] - 1
    lines = jax.vmap(lambda regression: matrix_normal.mean(regression, features))(belief.transitions)
    rewards = jax.vmap(lambda regression: matrix_normal.mean(regression, reward_features))(belief.rewards)
    end = matrix_normal.mean(belief.ends, 1)
    return LinearGaussianMDP(lines.weights, lines.noise_root, rewards.weights[..., 0], end.weights[0, 0], belief.bounds)


def log_predictive(form: Form, belief: LinearBelief, transition: Transition) -> Float[Array, ""]:
    """Log density of a next state, given its state and action."""
    state = transition.state
    target = transition.next_state - state if form.dynamics == "difference" else transition.next_state
    own = jax.tree.map(lambda leaf: leaf[transition.action], belief.transitions)
    return matrix_normal.log_predictive(own, form.features(state, belief.bounds), target)
