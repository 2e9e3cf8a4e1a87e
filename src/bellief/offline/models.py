"""Sampled MDPs of a log, and what policies are worth in them: one interface to the dense and the sparse belief.

MDPs are drawn afresh from their keys whenever they are needed, so that only values and visits are ever held for all of
them. MDP number j depends on the seed and on j alone: two policies, or two calls, meet the same MDPs.
"""

import functools
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bellief.beliefs import sparse as sparse_belief
from bellief.beliefs import tabular
from bellief.induction.monte_carlo import BATCH_BYTES
from bellief.mdp import bellman
from bellief.mdp import sparse as sparse_mdp
from bellief.offline.problem import Problem


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
    """MDPs of the dense belief, in JAX."""

    def __init__(self, problem: Problem, seed: int, count: int):
        self.problem, self.seed, self.count = problem, seed, count
        with jax.enable_x64(True):
            self.belief = problem.log.belief(problem.terminates)
        most = int(np.bincount(problem.log.cell_state * problem.log.actions + problem.log.cell_action).max())
        self.support = 1 << most.bit_length()

    def _options(self, copies: int) -> dict:
        states, actions = self.problem.log.states, self.problem.log.actions
        return {
            "count": self.count,
            "batch": max(1, min(self.count, BATCH_BYTES // (8 * states * states * (actions + copies)))),
            "prior": self.problem.prior,
            "support": self.support,
        }

    def values(self, policies: Float[np.ndarray, "P S A"]) -> Float[np.ndarray, "N P S"]:
        """What each policy is worth in each MDP."""
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            options = self._options(len(policies)) | {"horizon": self.problem.horizon}
            key, discount = jax.random.key(self.seed), self.problem.discount
            return np.asarray(_dense_values(key, self.belief, discount, jnp.asarray(policies), **options))

    def explore(self, policy: Float[np.ndarray, "S A"]) -> Explored:
        """Values, visits and action values of one policy."""
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            key, arrays = jax.random.key(self.seed), (jnp.asarray(policy), jnp.asarray(self.problem.start))
            explored = _dense_explore(key, self.belief, self.problem.discount, *arrays, **self._options(2))
            return Explored(*(np.asarray(field) for field in explored))

    def best_for_mean(self, allowed: np.ndarray) -> np.ndarray:
        """The best action in each state of the mean MDP."""
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            mdp = tabular.mean(self.problem.prior, self.belief, self.problem.discount)
            # A forbidden action is one that pays far less than any other.
            worst = float(jnp.min(mdp.reward)) - 1e3 * (1 + float(jnp.ptp(mdp.reward)))
            mdp = mdp._replace(reward=jnp.where(jnp.asarray(allowed), mdp.reward, worst))
            return np.asarray(bellman.policy_iteration(mdp).actions)


@functools.partial(jax.jit, static_argnames=("count", "batch", "prior", "support", "horizon"))
def _dense_values(key, belief, discount, policies, *, count, batch, prior, support, horizon):
    def one_mdp(index):
        mdp = tabular.sample(jax.random.fold_in(key, index), prior, belief, discount, support=support)
        if horizon is None:
            return jax.vmap(lambda policy: bellman.evaluate_exact(mdp, policy))(policies)
        return jax.vmap(lambda policy: bellman.evaluate_finite(mdp, policy, horizon))(policies)

    return jax.lax.map(one_mdp, jnp.arange(count), batch_size=batch)


@functools.partial(jax.jit, static_argnames=("count", "batch", "prior", "support"))
def _dense_explore(key, belief, discount, policy, start, *, count, batch, prior, support):
    def one_mdp(index):
        mdp = tabular.sample(jax.random.fold_in(key, index), prior, belief, discount, support=support)
        transition, reward = bellman.under_policy(mdp, policy)
        system = jnp.eye(len(reward)) - mdp.discount * transition
        values = jnp.linalg.solve(system, reward)
        return values, jnp.linalg.solve(system.T, start), bellman.action_values(mdp, values)

    return jax.lax.map(one_mdp, jnp.arange(count), batch_size=batch)


class SparseModels:
    """MDPs of the sparse belief, one after the other, in NumPy."""

    def __init__(self, problem: Problem, seed: int, count: int):
        self.problem, self.seed, self.count = problem, seed, count
        self.belief = problem.sparse_belief()
        self.guesses: dict[int, np.ndarray] = {}

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
        """The best action in each state of the mean MDP, by policy iteration with iterative evaluation."""
        mdp = sparse_belief.mean(self.problem.prior, self.belief)
        rewards = np.where(allowed, mdp.reward.reshape(allowed.shape), -np.inf)
        best, values = rewards.argmax(-1), None
        for _ in range(100):
            policy = np.eye(allowed.shape[1])[best]
            chain = sparse_mdp.under_policy(mdp, sparse_mdp.as_weights(policy))
            values = sparse_mdp.evaluate(chain, self.problem.discount, values)
            gains = rewards + self.problem.discount * sparse_mdp.expected(mdp, values).reshape(allowed.shape)
            kept = np.take_along_axis(gains, best[:, None], 1)[:, 0]
            better = gains.max(-1) > kept + 1e-6 * (1 + np.abs(values).max())
            if not better.any():
                break
            best = np.where(better, gains.argmax(-1), best)
        return best
