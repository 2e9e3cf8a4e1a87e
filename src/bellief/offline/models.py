"""Sampled MDPs of a log, and what policies are worth in them: one interface to the dense and the sparse belief.

MDPs are drawn afresh whenever they are needed, always the same ones, so that only values and visits are ever held for
all of them.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float

from bellief.beliefs import sparse as sparse_belief
from bellief.mdp import sparse as sparse_mdp
from bellief.offline.problem import Problem
from bellief.offline.worlds import World, counts_of, draw, values_of

# Memory for worlds that are held at once.
BATCH_BYTES = 128_000_000


class Explored(NamedTuple):
    """One policy in `N` sampled MDPs: values, discounted visits of states, and values of all actions."""

    values: Float[np.ndarray, "N S"]
    visits: Float[np.ndarray, "N S"]
    action_values: Float[np.ndarray, "N S A"]


class Models(Protocol):
    """Sampled MDPs."""

    def values(self, policies: Float[np.ndarray, "P S A"]) -> Float[np.ndarray, "N P S"]:
        """What each policy is worth in each MDP."""

    def explore(self, policy: Float[np.ndarray, "S A"]) -> Explored:
        """Values, visits and action values of one policy; for an endless horizon."""

    def best_for_mean(self, allowed: np.ndarray) -> np.ndarray:
        """The best action in each state of the mean MDP, among those allowed."""


def sampled(problem: Problem, seed: int, count: int) -> Models:
    """So many MDPs from the posterior."""
    return (DenseModels if problem.dense else SparseModels)(problem, seed, count)


class DenseModels:
    """MDPs of the dense belief, in batches."""

    def __init__(self, problem: Problem, seed: int, count: int):
        self.problem, self.seed, self.count = problem, seed, count
        self.counts = counts_of(problem)

    def _batches(self) -> Iterator[tuple[slice, World]]:
        size = max(1, BATCH_BYTES // (16 * self.counts.outcomes.size))
        for number, first in enumerate(range(0, self.count, size)):
            part = slice(first, min(first + size, self.count))
            generator = np.random.default_rng([self.seed, number])
            yield part, draw(generator, self.problem.prior, self.counts, part.stop - part.start)

    def values(self, policies: Float[np.ndarray, "P S A"]) -> Float[np.ndarray, "N P S"]:
        """What each policy is worth in each MDP."""
        return np.concatenate([values_of(worlds, np.asarray(policies), self.problem) for _, worlds in self._batches()])

    def explore(self, policy: Float[np.ndarray, "S A"]) -> Explored:
        """Values, visits and action values of one policy."""
        states, actions = policy.shape
        found = Explored(*(np.empty((self.count, *shape)) for shape in ((states,), (states,), (states, actions))))
        for part, worlds in self._batches():
            rows = worlds.rows[..., :states]
            system = np.eye(states) - self.problem.discount * np.einsum("sa,nsat->nst", policy, rows)
            reward = (policy * worlds.reward).sum(-1)
            found.values[part] = values = np.linalg.solve(system, reward[..., None])[..., 0]
            start = np.broadcast_to(self.problem.start[:, None], (len(values), states, 1))
            found.visits[part] = np.linalg.solve(np.swapaxes(system, -1, -2), start)[..., 0]
            following = np.einsum("nsat,nt->nsa", rows, values, optimize=True)
            found.action_values[part] = worlds.reward + self.problem.discount * following
        return found

    def best_for_mean(self, allowed: np.ndarray) -> np.ndarray:
        """The best action in each state of the mean MDP, with rewards by pair."""
        return best_actions(self.problem, allowed)


class SparseModels:
    """MDPs of the sparse belief, one after the other, in NumPy."""

    def __init__(self, problem: Problem, seed: int, count: int):
        self.problem, self.seed, self.count = problem, seed, count
        self.belief = problem.sparse_belief()

    def _draw(self, index: int, belief: sparse_belief.SparseBelief) -> sparse_mdp.SparseMDP:
        return sparse_belief.sample(np.random.default_rng([self.seed, index]), self.problem.prior, belief)

    def _evaluate(self, chain: sparse_mdp.Chain, guess: np.ndarray | None) -> np.ndarray:
        problem = self.problem
        if problem.horizon is not None:
            return sparse_mdp.evaluate_finite(chain, problem.discount, problem.horizon)
        return sparse_mdp.evaluate(chain, problem.discount, guess)

    def mean_values(self, policy: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "S"]:
        """What a policy is worth in the mean MDP."""
        mdp = sparse_belief.mean(self.problem.prior, self.belief)
        return self._evaluate(sparse_mdp.under_policy(mdp, sparse_mdp.as_weights(policy)), None)

    def values(self, policies: Float[np.ndarray, "P S A"]) -> Float[np.ndarray, "N P S"]:
        """What each policy is worth in each MDP; rows that no policy uses are not drawn."""
        used = np.flatnonzero((np.asarray(policies) > 0).any(0).ravel())
        belief = sparse_belief.restrict(self.belief, used)
        weights = [sparse_mdp.as_weights(policy)[:, used] for policy in policies]
        guesses = [self.mean_values(policy) for policy in policies]
        values = np.empty((self.count, len(policies), self.problem.log.states))
        for index in range(self.count):
            mdp = self._draw(index, belief)
            for number, (weight, guess) in enumerate(zip(weights, guesses, strict=True)):
                values[index, number] = self._evaluate(sparse_mdp.under_policy(mdp, weight), guess)
        return values

    def explore(self, policy: Float[np.ndarray, "S A"]) -> Explored:
        """Values, visits and action values of one policy."""
        states, actions = policy.shape
        problem, weights = self.problem, sparse_mdp.as_weights(policy)
        mean = sparse_mdp.under_policy(sparse_belief.mean(problem.prior, self.belief), weights)
        value_guess = sparse_mdp.evaluate(mean, problem.discount)
        visit_guess = sparse_mdp.occupancy(mean, problem.discount, problem.start)
        found = Explored(*(np.empty((self.count, *shape)) for shape in ((states,), (states,), (states, actions))))
        for index in range(self.count):
            mdp = self._draw(index, self.belief)
            chain = sparse_mdp.under_policy(mdp, weights)
            found.values[index] = values = sparse_mdp.evaluate(chain, problem.discount, value_guess)
            found.visits[index] = sparse_mdp.occupancy(chain, problem.discount, problem.start, visit_guess)
            q_values = mdp.reward + problem.discount * sparse_mdp.expected(mdp, values)
            found.action_values[index] = q_values.reshape(states, actions)
        return found

    def best_for_mean(self, allowed: np.ndarray) -> np.ndarray:
        """The best action in each state of the mean MDP."""
        return best_actions(self.problem, allowed)


def best_actions(problem: Problem, allowed: np.ndarray, rounds: int = 100) -> np.ndarray:
    """The best allowed action in each state of the mean MDP, by policy iteration with iterative evaluation."""
    mdp = sparse_belief.mean(problem.prior, problem.sparse_belief())
    rewards = np.where(allowed, mdp.reward.reshape(allowed.shape), -np.inf)
    best, values = rewards.argmax(-1), None
    for _ in range(rounds):
        chain = sparse_mdp.under_policy(mdp, sparse_mdp.as_weights(np.eye(allowed.shape[1])[best]))
        values = sparse_mdp.evaluate(chain, problem.discount, values)
        gains = rewards + problem.discount * sparse_mdp.expected(mdp, values).reshape(allowed.shape)
        kept = np.take_along_axis(gains, best[:, None], 1)[:, 0]
        better = gains.max(-1) > kept + 1e-6 * (1 + np.abs(values).max())
        if not better.any():
            break
        best = np.where(better, gains.argmax(-1), best)
    return best
