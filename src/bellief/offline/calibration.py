"""Simulation-based calibration: are the intervals right when the prior is?

Draw an MDP from the prior, let it produce data, evaluate a policy from the data alone, and see where the true value
falls among the posterior's draws. Over many repetitions a 90% interval must hold the truth 90% of the time, and the
rank of the truth must be uniform (Talts et al. 2018). Everything here is NumPy, so that nothing is checked against
itself.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from bellief.beliefs.tabular import PAPER_PRIOR, Prior
from bellief.offline.evaluate import evaluate
from bellief.offline.transitions import Transitions

LEVELS = (0.5, 0.8, 0.9, 0.95)


class Calibration(NamedTuple):
    """Coverage of the start value's intervals over all simulations, and the ranks of the truth."""

    coverage: dict[float, float]
    ranks: Int[np.ndarray, "n"]
    draws: int
    width: dict[float, float]

    def uniformity(self, bins: int = 20) -> float:
        """p-value of a chi-square test that ranks are uniform."""
        edges = np.linspace(0, self.draws + 1, bins + 1)
        observed, _ = np.histogram(self.ranks + 0.5, edges)
        # Ranks are whole numbers, so bins may hold different numbers of them.
        expected = np.diff(np.ceil(edges - 0.5)) / (self.draws + 1) * len(self.ranks)
        return float(stats.chisquare(observed, expected).pvalue)


class World(NamedTuple):
    """An MDP drawn from the prior. The last of the `O` outcomes ends the episode where there are S + 1 of them."""

    rows: Float[np.ndarray, "S A O"]
    reward: Float[np.ndarray, "S A"]
    reward_sd: Float[np.ndarray, "S A"]


def draw_world(rng: np.random.Generator, prior: Prior, states: int, actions: int, terminates: bool) -> World:
    """Dirichlet rows and NormalGamma rewards, exactly as the belief assumes."""
    outcomes = states + terminates
    rows = rng.dirichlet(np.full(outcomes, prior.concentration(outcomes)), size=(states, actions))
    precision = rng.gamma(prior.reward_shape, 1 / prior.reward_rate, size=(states, actions))
    reward = rng.normal(prior.reward_mean, 1 / np.sqrt(prior.reward_strength * precision))
    return World(rows, reward, 1 / np.sqrt(precision))


def simulate(
    rng: np.random.Generator, world: World, behaviour: Float[np.ndarray, "S A"], transitions: int
) -> Transitions:
    """A log of the behaviour policy in the world, beginning in state 0 and again after each end."""
    states, actions, _ = world.rows.shape
    cumulative, choices = np.cumsum(world.rows, axis=-1), np.cumsum(behaviour, axis=-1)
    log = np.zeros((transitions, 5))
    state = 0
    for step, (first, second, noise) in enumerate(
        zip(rng.random(transitions), rng.random(transitions), rng.normal(size=transitions), strict=True)
    ):
        action = min(int(np.searchsorted(choices[state], first, side="right")), actions - 1)
        outcome = int(np.searchsorted(cumulative[state, action], second * cumulative[state, action, -1], side="right"))
        reward = world.reward[state, action] + world.reward_sd[state, action] * noise
        ended = outcome == states
        following = 0 if ended else outcome
        log[step] = state, action, reward, following, ended
        state = following
    columns = [log[:, 0].astype(int), log[:, 1].astype(int), log[:, 2], log[:, 3].astype(int), log[:, 4].astype(bool)]
    return Transitions.from_arrays(*columns, states=states, actions=actions)


def true_values(world: World, policy: Float[np.ndarray, "S A"], discount: float) -> Float[np.ndarray, "S"]:
    """Values of a policy in a world, by a linear solve."""
    states = len(policy)
    chain = np.einsum("sa,sat->st", policy, world.rows[..., :states])
    return np.linalg.solve(np.eye(states) - discount * chain, (policy * world.reward).sum(-1))


def calibrate(
    states: int = 4,
    actions: int = 2,
    transitions: int = 50,
    simulations: int = 1000,
    discount: float = 0.9,
    terminates: bool = False,
    draws: int = 199,
    method: str = "joint",
    prior: Prior = PAPER_PRIOR,
    seed: int = 0,
    **options: Any,
) -> Calibration:
    """Repeat draw, simulate, evaluate; `options` go to `evaluate`. The target policy is drawn anew each time."""
    rng = np.random.default_rng(seed)
    hits: dict[float, list[bool]] = {level: [] for level in LEVELS}
    widths: dict[float, list[float]] = {level: [] for level in LEVELS}
    ranks = []
    for number in range(simulations):
        world = draw_world(rng, prior, states, actions, terminates)
        policy = rng.dirichlet(np.ones(actions), size=states)
        data = simulate(rng, world, np.full((states, actions), 1 / actions), transitions)
        posterior = evaluate(
            data,
            policy,
            discount,
            method=method,
            prior=prior,
            start=0,
            draws=draws,
            seed=seed * simulations + number,
            terminates=terminates,
            **options,
        )
        truth = true_values(world, policy, discount)[0]
        ranks.append(int((posterior.start_samples < truth).sum()))
        for level in LEVELS:
            low, high = (bound[0] for bound in posterior.interval(level))
            hits[level].append(bool(low <= truth <= high))
            widths[level].append(high - low)
    return Calibration(
        coverage={level: float(np.mean(hits[level])) for level in LEVELS},
        ranks=np.array(ranks),
        draws=len(posterior.start_samples),
        width={level: float(np.median(widths[level])) for level in LEVELS},
    )
