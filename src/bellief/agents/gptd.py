"""Control by Gaussian-process temporal differences (Engel, Mannor and Meir 2003; Engel et al. 2005 for control).

On-policy: V is a function of state and action, and the reward of a step is explained by the values of that pair and of
the next pair that was really taken. Which model of the environment this assumes is the paper's objection to it.

Deviations: neither the noise nor the way to explore is printed. Exploration is epsilon-greedy by default;
`explore="sample"` follows one draw of the value function until the next plan. It learns at every step, and by default
acts on the values of the last plan, as section 4.1 has each algorithm update its policy at steps 1, 3, 6, 10, ...;
`pace="every-step"` acts on the latest values.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.agents import pace, rules
from bellief.errors import UserError, require
from bellief.features import Features, parse
from bellief.types import BoxSpaces, Transition
from bellief.values import gptd_values

# Where a dimension's bounds are not known, kernels take it to be this wide.
UNKNOWN_WIDTH = 2.0


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings.

    Args:
        form: `features` (what the paper compares with) or `kernel` (a sparse dictionary).
        features: of the state, separately for each action; by default those of BBI in the paper, the ten printed
            functions in two dimensions and the state itself in others.
        noise: standard deviation of a reward about V(x) - discount V(x').
        explore: `epsilon` (a random action with that probability) or `sample`.
        threshold: part of a new point's variance that the dictionary may leave unexplained.
        points: the most that the dictionary holds.
        width: of the Gaussian kernel, as a fraction of the box.
        scale: standard deviation of values under the kernel's prior.
        pace: `scheduled-policy`, or `every-step`, where every step renews the values that are acted on.

    >>> from bellief.agents import gptd
    >>> gptd.Config(form="kernel", points=50).explore
    'epsilon'
    """

    form: str = "features"
    features: str | None = None
    discount: float = 0.99
    noise: float = 0.1
    explore: str = "epsilon"
    epsilon: float = 0.1
    threshold: float = 0.1
    points: int = 100
    width: float = 0.15
    scale: float = 1.0
    pace: str = pace.field(pace.SCHEDULED_POLICY)

    def __post_init__(self):
        pace.check("gptd", self.pace, (pace.SCHEDULED_POLICY, pace.EVERY_STEP))
        if self.pace == pace.EVERY_STEP and self.explore == "sample":
            raise UserError("gptd follows a draw until the next plan: leave out explore=sample, or pace=every-step.")
        require(self.form in ("features", "kernel"), f"gptd has no form '{self.form}'; choose features or kernel.")
        if self.explore not in ("epsilon", "sample"):
            raise UserError(f"gptd cannot explore by '{self.explore}'; choose epsilon or sample.")
        require(0 <= self.discount <= 1 and 0 <= self.epsilon <= 1, "discount and epsilon must lie in [0, 1].")
        for name in ("noise", "threshold", "width", "scale"):
            require(getattr(self, name) > 0, f"{name} must be positive, not {getattr(self, name)}.")
        require(self.points >= 2, f"points must be at least 2, not {self.points}.")


class Pending(NamedTuple):
    """The last step, which is explained when the next action is known; `waits` is false before the first."""

    transition: Transition
    waits: Bool[Array, ""]


class State(NamedTuple):
    """What has been learned (a `FeatureForm` or a `Dictionary`), the last step, the values in force and the scales."""

    learned: Any
    pending: Pending
    weights: Float[Array, "F"]
    bounds: Float[Array, "2 D"]
    actions: Int[Array, "A"]


class Info(NamedTuple):
    """Size of the weights in force, and points in the dictionary (zero in the feature form)."""

    weight_size: Float[Array, ""]
    points: Int[Array, ""]


def _map(config: Config, dimension: int) -> Features:
    return parse(config.features or ("constant+paper" if dimension == 2 else "raw"), dimension)


def init(key: Key[Array, ""], config: Config, spaces: BoxSpaces) -> State:
    """The prior; values of zero."""
    del key
    dimension = spaces.dimension
    zeros = jnp.zeros(dimension, float)
    last = Transition(zeros, jnp.array(0, jnp.int32), zeros[0], jnp.copy(zeros), jnp.array(False))
    low = [-UNKNOWN_WIDTH / 2 if value is None else value for value in spaces.low]
    high = [UNKNOWN_WIDTH / 2 if value is None else value for value in spaces.high]
    if config.form == "features":
        size = spaces.actions * _map(config, dimension).size(dimension)
        learned: Any = gptd_values.init_features(size)
    else:
        size = config.points
        learned = gptd_values.init_dictionary(size, (dimension + 1,))
    return State(
        learned,
        Pending(last, jnp.array(False)),
        jnp.zeros(size, float),
        jnp.array([low, high], float),
        jnp.arange(spaces.actions),
    )


def _pair_features(config: Config, state: State, observation, action) -> Float[Array, "A*F"]:
    own = _map(config, observation.shape[0])(observation, state.bounds)
    return ((state.actions == action).astype(own.dtype)[:, None] * own).reshape(-1)


def _kernel(config: Config, state: State) -> gptd_values.Kernel:
    """A Gaussian kernel between states, zero between different actions (the last entry of a point)."""
    over_states = gptd_values.gaussian_kernel(config.width * (state.bounds[1] - state.bounds[0]), config.scale)
    return lambda x, y: jnp.where(x[-1] == y[-1], over_states(x[:-1], y[:-1]), 0.0)


def _pair_point(observation, action) -> Float[Array, "D+1"]:
    return jnp.append(observation, action.astype(observation.dtype))


def plan(key: Key[Array, ""], config: Config, spaces: BoxSpaces, state: State) -> tuple[State, Info]:
    """Turn what has been learned into values to act on: their mean, or one draw."""
    del spaces
    values, points = _values(config, state.learned, key if config.explore == "sample" else None)
    return state._replace(weights=values), Info(jnp.linalg.norm(values), points)


def _values(config: Config, learned: Any, key: Key[Array, ""] | None) -> tuple[Float[Array, "F"], Int[Array, ""]]:
    """Weights of the values' mean, or of one draw where there is a key; and the points in the dictionary."""
    if config.form == "features":
        posterior = gptd_values.weights(learned)
        values = posterior.mean if key is None else gptd_values.sample_weights(key, posterior)
        return values, jnp.array(0, jnp.int32)
    process = gptd_values.process(learned)
    at_points = process.mean
    if key is not None:
        at_points = at_points + gptd_values.sample_process(key, process)
    return process.inverse @ at_points, process.size


def action_values(config: Config, state: State, observation: Float[Array, "D"]) -> Float[Array, "A"]:
    """The values in force of every action."""
    if config.form == "features":
        return jax.vmap(lambda action: _pair_features(config, state, observation, action) @ state.weights)(
            state.actions
        )
    kernel = _kernel(config, state)

    def value(action):
        x = _pair_point(observation, action)
        return gptd_values.similarity(kernel, state.learned.points, state.learned.size, x) @ state.weights

    return jax.vmap(value)(state.actions)


def act(key: Key[Array, ""], config: Config, state: State, observation: Float[Array, "D"]) -> Int[Array, ""]:
    """The best action, ties broken at random; with `epsilon` now and then any."""
    tie_key, coin_key, any_key = jax.random.split(key, 3)
    best = rules.argmax(tie_key, action_values(config, state, observation)[None])[0]
    if config.explore == "sample":
        return best
    other = jax.random.randint(any_key, (), 0, state.actions.shape[0]).astype(best.dtype)
    return jnp.where(jax.random.uniform(coin_key) < config.epsilon, other, best)


def update(config: Config, state: State, transition: Transition) -> State:
    """Explain the step before, now that its successor's action is known; keep this one.

    A step that was cut off by a time limit has no successor and is left out.
    """
    before, waits = state.pending
    follows = jnp.all(before.next_state == transition.state)
    usable = waits & (before.terminated | follows)
    if config.form == "features":
        here = _pair_features(config, state, before.state, before.action)
        there = _pair_features(config, state, transition.state, transition.action)
        difference = here - jnp.where(before.terminated, 0, config.discount) * there
        learned: Any = gptd_values.update_features(state.learned, difference, before.reward, config.noise)
    else:
        learned = gptd_values.update_dictionary(
            _kernel(config, state),
            state.learned,
            _pair_point(before.state, before.action),
            _pair_point(transition.state, transition.action),
            before.terminated,
            before.reward,
            config.discount,
            config.noise,
            config.threshold,
        )
    learned = jax.tree.map(lambda new, old: jnp.where(usable, new, old), learned, state.learned)
    state = state._replace(learned=learned, pending=Pending(transition, jnp.array(True)))
    if config.pace == pace.EVERY_STEP:
        return state._replace(weights=_values(config, learned, None)[0])
    return state


def policy(config: Config, state: State, observation: Float[Array, "D"]) -> Float[Array, "A"]:
    """Action probabilities in a state."""
    values = action_values(config, state, observation)
    chance = config.epsilon if config.explore == "epsilon" else 0.0
    return (1 - chance) * rules.greedy(values) + chance / values.shape[0]
