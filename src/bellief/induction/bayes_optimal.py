"""The exact Bayes-optimal value of small problems, by dynamic programming over beliefs.

A problem has finitely many outcomes for each state and action, with known rewards and next states and an unknown
distribution that has a Dirichlet prior. The information state is then the state and the counts of outcomes, and the
Bayes-optimal value is that of the Bayes-adaptive MDP:

    V_h(s, n) = max_a sum_o p(o | s, a, n) [r(s, a, o) + discount V_{h-1}(s', n + e_{s,a,o})],

with p the posterior mean of the outcome's probability. The paper bounds this value from above (by hindsight) and from
below (by policies); here it is computed. Equal information states are kept once, for any order of the
observations, so the number of them grows as a polynomial of the horizon, of a degree that grows with the problem: two
states and two actions allow about twenty steps, a bandit with two arms a hundred.

>>> from bellief.induction import bayes_optimal
>>> bandit = bayes_optimal.bernoulli_bandit(arms=2)  # uniform priors
>>> solution = bayes_optimal.solve(bandit, horizon=2)
>>> round(solution.value, 6) == round(13 / 12, 6)  # 1/2, then 2/3 after a success and 1/2 after a failure
True
>>> solution.information_states.tolist()
[1, 4, 10]
>>> chain = bayes_optimal.from_rewards([[0.0, 0.0], [1.0, 0.5]], concentration=0.5)  # two states, two actions
>>> values = bayes_optimal.values_by_horizon(chain, 6)
>>> bool((values[1:] > values[:-1]).all())
True
>>> blind = bayes_optimal.evaluate(chain, 6, bayes_optimal.mean_mdp_policy(chain, 6))
>>> adaptive = bayes_optimal.evaluate(chain, 6, bayes_optimal.certainty_equivalent(chain))
>>> bound = bayes_optimal.hindsight_bound(chain, 6, mdps=2_000, seed=0)
>>> bool(blind <= adaptive <= values[-1] <= bound.value + 4 * bound.standard_error)
True
>>> type(chain).__name__, type(solution).__name__, type(bound).__name__
('Problem', 'Solution', 'Bound')
>>> layers = bayes_optimal.unroll(bayes_optimal.bandit_chain(size=3), horizon=2)
>>> type(layers[0]).__name__, [len(layer.state) for layer in layers]
('Layer', [1, 4, 13])
>>> chances = bayes_optimal.draw_mdps(chain, count=5, seed=0)
>>> known, actions = bayes_optimal.backward_induction(chain, chances, horizon=6)
>>> chances.shape, known.shape, actions.shape
((5, 2, 2, 2), (5, 2), (5, 2))
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.errors import UserError, require

# About a gigabyte of tables.
MOST_INFORMATION_STATES = 5_000_000


class Problem(NamedTuple):
    """What is known beforehand: prior pseudo-counts, next states and rewards of every outcome of every pair."""

    concentration: Float[np.ndarray, "S A O"]
    next_state: Int[np.ndarray, "S A O"]
    reward: Float[np.ndarray, "S A O"]
    discount: float = 1.0

    @property
    def mean(self) -> Float[np.ndarray, "S A O"]:
        """Prior mean of the outcomes' probabilities."""
        return self.concentration / self.concentration.sum(-1, keepdims=True)


class Layer(NamedTuple):
    """The different information states after so many steps, and where each action and outcome leads in the next layer
    (empty in the last).
    """

    state: Int[np.ndarray, "n"]
    counts: Int[np.ndarray, "n S A O"]
    following: Int[np.ndarray, "n A O"]


class Solution(NamedTuple):
    """Value of the start, of every action there, and the number of information states by steps."""

    value: float
    action_values: Float[np.ndarray, "A"]
    information_states: Int[np.ndarray, "H+1"]


class Bound(NamedTuple):
    """A Monte Carlo estimate with its standard error."""

    value: float
    standard_error: float


# A policy takes the states and counts of several information states and the steps to go, and gives an action for each.
Policy = Callable[[Int[np.ndarray, "n"], Int[np.ndarray, "n S A O"], int], Int[np.ndarray, "n"]]


def bernoulli_bandit(arms: int, successes: float = 1.0, failures: float = 1.0, discount: float = 1.0) -> Problem:
    """Arms that pay one with an unknown probability, which has a Beta(successes, failures) prior."""
    shape = (1, arms, 2)
    concentration = np.broadcast_to([failures, successes], shape).astype(float)
    reward = np.broadcast_to([0.0, 1.0], shape).astype(float)
    return _checked(Problem(concentration, np.zeros(shape, int), reward, discount))


def from_rewards(reward: object, concentration: float = 0.5, discount: float = 1.0) -> Problem:
    """An MDP with known rewards [S, A] and unknown transitions: every next state is an outcome with a Dirichlet prior
    of `concentration` each (the paper's is 0.5).
    """
    table = np.asarray(reward, float)
    require(table.ndim == 2, f"reward must be a table of states and actions, not an array of {table.ndim} dimensions.")
    states, actions = table.shape
    shape = (states, actions, states)
    following = np.broadcast_to(np.arange(states), shape)
    return _checked(
        Problem(np.full(shape, float(concentration)), following, np.broadcast_to(table[..., None], shape), discount)
    )


def bandit_chain(size: int, concentration: float = 1.0, discount: float = 1.0) -> Problem:
    """A chain of bandits: in every state one action is safe and pays 0.2 where it is taken, returning to the start; the
    other goes on with an unknown probability of its own, or falls back to the start, and pays one at the end.
    """
    shape = (size, 2, 2)
    following, reward = np.zeros(shape, int), np.zeros(shape)
    reward[:, 0] = 0.2
    following[:, 1, 1] = np.minimum(np.arange(size) + 1, size - 1)
    reward[-1, 1, 1] = 1.0
    return _checked(Problem(np.full(shape, float(concentration)), following, reward, discount))


def _checked(problem: Problem) -> Problem:
    require((problem.concentration > 0).all(), "Prior pseudo-counts must be positive.")
    require(0 < problem.discount <= 1, f"discount must lie in (0, 1], not {problem.discount}.")
    return problem


# The information states


def unroll(problem: Problem, horizon: int, start: int = 0, most: int = MOST_INFORMATION_STATES) -> list[Layer]:
    """All information states that can be reached in up to `horizon` steps, each once in its layer."""
    require(horizon >= 0, f"horizon must be at least 0, not {horizon}.")
    states, actions, outcomes = problem.concentration.shape
    require(0 <= start < states, f"There is no state {start}; the problem has {states}.")
    shape = (states, actions, outcomes)
    size = int(np.prod(shape))
    state, counts = np.array([start]), np.zeros((1, size), np.int16)
    one = np.eye(size, dtype=np.int16).reshape(*shape, size)
    layers, total = [], 1
    for _ in range(horizon):
        children = counts[:, None, None] + one[state]
        rows = np.concatenate([problem.next_state[state][..., None].astype(np.int16), children], axis=-1)
        unique, place = _unique_rows(rows.reshape(-1, size + 1))
        layers.append(Layer(state, counts.reshape(-1, *shape), place.reshape(len(state), actions, outcomes)))
        state, counts = unique[:, 0].astype(int), unique[:, 1:]
        total += len(state)
        if total > most:
            raise UserError(
                f"More than {most:,} information states within {len(layers)} steps: choose a shorter horizon than "
                f"{horizon}, or a smaller problem."
            )
    return [*layers, Layer(state, counts.reshape(-1, *shape), np.zeros((0, actions, outcomes), int))]


def _unique_rows(rows: Int[np.ndarray, "n c"]) -> tuple[Int[np.ndarray, "u c"], Int[np.ndarray, "n"]]:
    """The different rows and where each row is among them; rows are compared as bytes, which sorts faster."""
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, place = np.unique(packed, return_index=True, return_inverse=True)
    return rows[first], place


def _action_values(problem: Problem, layer: Layer, later: Float[np.ndarray, "m"]) -> Float[np.ndarray, "n A"]:
    """The Bellman backup of the Bayes-adaptive MDP."""
    here = np.arange(len(layer.state))
    weight = problem.concentration[layer.state] + layer.counts[here, layer.state]
    probability = weight / weight.sum(-1, keepdims=True)
    return np.sum(probability * (problem.reward[layer.state] + problem.discount * later[layer.following]), axis=-1)


# Values


def solve(problem: Problem, horizon: int, start: int = 0) -> Solution:
    """The Bayes-optimal value of `horizon` steps, exactly."""
    layers = unroll(problem, horizon, start)
    values, scores = np.zeros(len(layers[-1].state)), np.zeros((1, problem.concentration.shape[1]))
    for layer in reversed(layers[:-1]):
        scores = _action_values(problem, layer, values)
        values = scores.max(-1)
    return Solution(float(values[0]), scores[0], np.array([len(layer.state) for layer in layers]))


def values_by_horizon(problem: Problem, horizon: int, start: int = 0) -> Float[np.ndarray, "H"]:
    """The Bayes-optimal values of 1, 2, ..., `horizon` steps, from one unrolling."""
    layers = unroll(problem, horizon, start)
    found = []
    for steps in range(1, horizon + 1):
        values = np.zeros(len(layers[steps].state))
        for layer in reversed(layers[:steps]):
            values = _action_values(problem, layer, values).max(-1)
        found.append(values[0])
    return np.array(found)


def evaluate(problem: Problem, horizon: int, policy: Policy, start: int = 0) -> float:
    """The exact Bayesian value of a policy that sees states and counts: a lower bound on the Bayes-optimal value."""
    layers = unroll(problem, horizon, start)
    values = np.zeros(len(layers[-1].state))
    for passed, layer in reversed(list(enumerate(layers[:-1]))):
        scores = _action_values(problem, layer, values)
        actions = policy(layer.state, layer.counts, horizon - passed)
        values = np.take_along_axis(scores, actions[:, None], axis=1)[:, 0]
    return float(values[0])


def backward_induction(
    problem: Problem, probability: Float[np.ndarray, "*n S A O"], horizon: int
) -> tuple[Float[np.ndarray, "*n S"], Int[np.ndarray, "*n S"]]:
    """Optimal values of `horizon` steps and first actions, with known probabilities; of many MDPs at once."""
    values = np.zeros(probability.shape[:-2])
    actions = np.zeros(values.shape, int)
    for _ in range(horizon):
        later = values[..., problem.next_state]
        scores = np.sum(probability * (problem.reward + problem.discount * later), axis=-1)
        actions, values = scores.argmax(-1), scores.max(-1)
    return values, actions


def mean_mdp_policy(problem: Problem, horizon: int) -> Policy:
    """The policy that is optimal for the prior's mean MDP and never learns: one lower bound of the paper's."""
    plans = [backward_induction(problem, problem.mean, steps)[1] for steps in range(horizon + 1)]
    return lambda state, counts, steps: plans[steps][state]


def certainty_equivalent(problem: Problem) -> Policy:
    """At every step the first action of the present mean MDP's optimal policy: it learns, and never explores."""

    def policy(state: np.ndarray, counts: np.ndarray, steps: int) -> np.ndarray:
        weight = problem.concentration + counts
        actions = backward_induction(problem, weight / weight.sum(-1, keepdims=True), steps)[1]
        return actions[np.arange(len(state)), state]

    return policy


def hindsight_bound(problem: Problem, horizon: int, mdps: int = 10_000, seed: int = 0, start: int = 0) -> Bound:
    """The paper's upper bound, E_mdp max_policy V: what an agent could earn that knows the MDP from the start."""
    probability = draw_mdps(problem, mdps, seed)
    values = backward_induction(problem, probability, horizon)[0][:, start]
    return Bound(float(values.mean()), float(values.std(ddof=1) / np.sqrt(mdps)))


def draw_mdps(problem: Problem, count: int, seed: int) -> Float[np.ndarray, "n S A O"]:
    """Outcome probabilities of MDPs from the prior."""
    rng = np.random.default_rng(seed)
    gamma = rng.standard_gamma(problem.concentration, (count, *problem.concentration.shape))
    return gamma / gamma.sum(-1, keepdims=True)
