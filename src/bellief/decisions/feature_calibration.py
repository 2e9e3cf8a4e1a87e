"""Simulation-based calibration where states are vectors: are intervals right when the linear-Gaussian prior is?

As in `calibration`, worlds, logs and true values are NumPy's, so that they share no code with what is checked.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special, stats

from bellief.beliefs.linear import Prior
from bellief.decisions.certificates import Calibration, Certificate, Tally
from bellief.evaluation.feature_evaluation import METHODS, evaluate_features
from bellief.evaluation.question_checks import check_choice, check_numbers
from bellief.logs.feature_log import FeatureTransitions, Units
from bellief.logs.transitions import Transitions

# States of made-up problems are measured in units of one, and quadratic features refer to this box.
EDGE = 3.0
# What made-up problems come from: a step changes a feature by a seventh of its unit, more or less, and what it changes
# by depends as weakly on the state; rewards are of the size of one.
WORLDS = Prior(precision=1.0, scale=0.02, more_degrees=2.0, reward_precision=0.1, reward_shape=2.0, reward_rate=0.1)
EPISODE = 20
TRUTH_ROLLOUTS = 20_000


class LinearWorld(NamedTuple):
    """What a step adds to a state is N(W_a^T [1, s], T_a T_a^T); it pays w_a . [1, u, products of u], u = s / 3."""

    weights: Float[np.ndarray, "A D+1 D"]
    noise_root: Float[np.ndarray, "A D D"]
    reward: Float[np.ndarray, "A G"]
    reward_sd: Float[np.ndarray, "A"]


def draw_world(rng: np.random.Generator, prior: Prior, dimension: int, actions: int) -> LinearWorld:
    """Matrix-normal inverse-Wishart transitions and normal-inverse-gamma rewards, exactly as the belief assumes."""
    degrees = dimension + prior.more_degrees
    scale = prior.scale * np.eye(dimension)
    covariance = np.stack(
        [np.reshape(stats.invwishart.rvs(degrees, scale, random_state=rng), scale.shape) for _ in range(actions)]
    )
    root = np.linalg.cholesky(covariance)
    normals = rng.standard_normal((actions, dimension + 1, dimension)) / np.sqrt(prior.precision)
    variance = 1 / rng.gamma(prior.reward_shape, 1 / prior.reward_rate, size=actions)
    size = describe(np.zeros((1, dimension))).shape[1]
    reward = rng.standard_normal((actions, size)) * np.sqrt(variance / prior.reward_precision)[:, None]
    return LinearWorld(normals @ np.swapaxes(root, 1, 2), root, reward, np.sqrt(variance))


def describe(states: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n G"]:
    """One, the features and all their products; the order does not matter, as all weights have the same prior."""
    unit = states / EDGE
    rows, columns = np.triu_indices(states.shape[1])
    return np.concatenate([np.ones((len(unit), 1)), unit, unit[:, rows] * unit[:, columns]], axis=1)


def step(rng: np.random.Generator, world: LinearWorld, states: Float[np.ndarray, "n D"], action: np.ndarray):
    """Next states and mean rewards, for many states at once."""
    known = np.concatenate([np.ones((len(states), 1)), states], axis=1)
    noise = rng.standard_normal(states.shape)
    moved = np.einsum("nf,nfd->nd", known, world.weights[action])
    moved += np.einsum("ndk,nk->nd", world.noise_root[action], noise)
    return states + moved, (describe(states) * world.reward[action]).sum(1)


def simulate(rng: np.random.Generator, world: LinearWorld, transitions: int) -> FeatureTransitions:
    """A log of random actions in episodes of 20 steps that begin at N(0, 1) and are cut short."""
    actions, dimension = world.weights.shape[0], world.weights.shape[2]
    episodes = -(-transitions // EPISODE)
    states = rng.standard_normal((episodes, dimension))
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for _ in range(EPISODE):
        action = rng.integers(0, actions, episodes)
        following, mean = step(rng, world, states, action)
        reward = mean + world.reward_sd[action] * rng.standard_normal(episodes)
        for column, values in zip(columns, (states, action, reward, following), strict=True):
            column.append(values)
        states = following
    whole = [np.concatenate(np.stack(column, axis=1))[:transitions] for column in columns]
    episode = np.repeat(np.arange(episodes), EPISODE)[:transitions]
    state, action, reward, following = whole
    log = Transitions.from_arrays(state, action, reward, following, episode=episode, actions=actions)
    assert isinstance(log, FeatureTransitions)
    return log


def true_value(rng: np.random.Generator, world: LinearWorld, policy, start, discount: float, horizon: int) -> float:
    """Mean return of many rollouts."""
    states = np.repeat(start[None], TRUTH_ROLLOUTS, axis=0)
    total = np.zeros(TRUTH_ROLLOUTS)
    for number in range(horizon):
        chances = np.cumsum(special.softmax(policy[:, 0] + states @ policy[:, 1:].T, axis=1), axis=1)
        action = (rng.random((TRUTH_ROLLOUTS, 1)) > chances[:, :-1]).sum(1)
        states, reward = step(rng, world, states, action)
        total += discount**number * reward
    return float(total.mean())


def calibrate(
    dimension: int, actions: int, transitions: int, simulations: int, discount: float, horizon: int, draws: int,
    method: str, seed: int, own_units: bool, progress: Callable[[float], None],
) -> Calibration:  # fmt: skip
    """Repeat draw, simulate, evaluate; a softmax policy and a first state are drawn for each simulation."""
    rng, tally = np.random.default_rng(seed), Tally()
    box = np.stack([np.full(dimension, -EDGE), np.full(dimension, EDGE)])
    units = None if own_units else Units(np.zeros(dimension), np.ones(dimension), 1.0, box)
    for number in range(simulations):
        world = draw_world(rng, WORLDS, dimension, actions)
        policy = rng.normal(scale=0.5, size=(actions, dimension + 1))
        log, start = simulate(rng, world, transitions), rng.standard_normal(dimension)
        posterior = evaluate_features(
            log, policy, discount, method=method, prior="logged" if own_units else WORLDS, horizon=horizon, start=start,
            draws=draws, seed=seed * simulations + number, units=units, check=False,
        )  # fmt: skip
        tally.add(posterior.start_samples, true_value(rng, world, policy, start, discount, horizon))
        progress((number + 1) / simulations)
    return tally.finish()


def certify_features(
    features: int,
    transitions: int,
    *,
    actions: int = 2,
    discount: float = 0.9,
    horizon: int = EPISODE,
    method: str = "joint",
    simulations: int = 300,
    draws: int = 199,
    seed: int = 0,
    estimated: bool = True,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Certificate:
    """Calibration for problems whose states have so many features: worlds from the default prior, linear dynamics.

    `estimated` asks for a second pass in which the units are taken from each log, as `evaluate` does.

    >>> from bellief.decisions.feature_calibration import certify_features
    >>> found = certify_features(1, 20, simulations=1, draws=9, horizon=2, estimated=False)
    >>> found.known.draws
    9
    """
    check_choice("method for states that are vectors", method, METHODS)
    counts = {"features": features, "transitions": transitions, "actions": actions, "simulations": simulations}
    check_numbers(discount, 0.5, seed, draws=draws, horizon=horizon, **counts)
    passes = 2 if estimated else 1

    def run(number: int) -> Calibration:
        return calibrate(
            features, actions, transitions, simulations, discount, horizon, draws, method, seed, number == 1,
            lambda fraction: progress((number + fraction) / passes),
        )  # fmt: skip

    settings = counts | {"discount": discount, "horizon": horizon, "prior": "logged", "method": method}
    return Certificate(settings, run(0), run(1) if estimated else None)
