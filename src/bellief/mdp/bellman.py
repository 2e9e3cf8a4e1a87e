"""Bellman operators and exact solutions of a known `TabularMDP`.

Policies are arrays of action probabilities `[S, A]`; a deterministic one is a one-hot array. Everything is unbatched.

>>> import jax, numpy as np
>>> from bellief.envs import make
>>> from bellief.mdp import bellman
>>> mdp = make("nchain").mdp(discount=0.9)
>>> best = bellman.policy_iteration(mdp)
>>> type(best).__name__
'Solution'
>>> print(best.actions, np.asarray(best.values).round(1))
[1 1 1 1 1] [25.5 28.5 32.6 38.4 46.4]
>>> [method(mdp).actions.tolist() for method in (bellman.value_iteration, bellman.modified_policy_iteration)]
[[1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]
>>> values, actions = bellman.backward_induction(mdp, horizon=2)
>>> actions.tolist()
[[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]

A policy's own value, from a linear solve, is what its backup leaves as it is:

>>> policy = np.eye(2)[best.actions]
>>> exact = bellman.evaluate_exact(mdp, policy)
>>> transition, reward = bellman.under_policy(mdp, policy)
>>> np.allclose(bellman.backup(mdp, policy, exact), reward + 0.9 * transition @ exact, rtol=1e-4)
True
>>> np.allclose(bellman.action_values(mdp, exact).max(1), exact, rtol=1e-4)
True
>>> np.allclose(bellman.evaluate_finite(mdp, policy, horizon=200), exact, rtol=1e-4)
True
>>> round(bellman.long_run_average(mdp, policy), 3)
3.677
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bellief.mdp.tabular_mdp import TabularMDP


class Solution(NamedTuple):
    """An optimal value function, a greedy policy for it and the number of sweeps it took."""

    values: Float[Array, "S"]
    actions: Int[Array, "S"]
    iterations: Int[Array, ""]


def _on_device(mdp: TabularMDP) -> TabularMDP:
    """JAX arrays of the precision that is switched on; an environment's own model is NumPy's float64."""
    return jax.tree.map(jnp.asarray, mdp)


def under_policy(mdp: TabularMDP, policy: Float[Array, "S A"]) -> tuple[Float[Array, "S S"], Float[Array, "S"]]:
    """Transition matrix and mean reward of the Markov chain that `policy` makes of the MDP."""
    return jnp.einsum("sa,sat->st", policy, mdp.transition), jnp.sum(policy * mdp.reward, axis=-1)


def action_values(mdp: TabularMDP, values: Float[Array, "S"]) -> Float[Array, "S A"]:
    """Q(s, a) = reward + discount * expected next value; an ended episode contributes nothing."""
    return mdp.reward + mdp.discount * mdp.transition @ values


def backup(mdp: TabularMDP, policy: Float[Array, "S A"], values: Float[Array, "S"]) -> Float[Array, "S"]:
    """The paper's Bellman operator for a fixed policy, applied once."""
    return jnp.sum(policy * action_values(mdp, values), axis=-1)


def evaluate_exact(mdp: TabularMDP, policy: Float[Array, "S A"]) -> Float[Array, "S"]:
    """Infinite-horizon value of a policy by one linear solve of (I - discount P) V = r."""
    transition, reward = under_policy(mdp, policy)
    identity = jnp.eye(reward.shape[0], dtype=reward.dtype)
    return jnp.linalg.solve(identity - mdp.discount * transition, reward)


def evaluate_finite(
    mdp: TabularMDP, policy: Float[Array, "S A"], horizon: int, final: Float[Array, "S"] | None = None
) -> Float[Array, "S"]:
    """Value of `horizon` steps under a policy, starting the recursion from `final` (zero by default)."""
    transition, reward = under_policy(mdp, policy)
    first = jnp.zeros_like(reward) if final is None else final
    return jax.lax.fori_loop(0, horizon, lambda _, values: reward + mdp.discount * transition @ values, first)


def backward_induction(mdp: TabularMDP, horizon: int) -> tuple[Float[Array, "H S"], Int[Array, "H S"]]:
    """Optimal values and actions with `horizon`, `horizon - 1`, ..., 1 steps to go (row 0 has the most steps left)."""

    def step(values, _):
        q_values = action_values(mdp, values)
        best = jnp.max(q_values, axis=-1)
        return best, (best, jnp.argmax(q_values, axis=-1))

    _, (values, actions) = jax.lax.scan(step, jnp.zeros_like(mdp.reward[:, 0]), None, length=horizon, reverse=False)
    return values[::-1], actions[::-1]


def value_iteration(mdp: TabularMDP, tolerance: float = 1e-5, max_iterations: int = 100_000) -> Solution:
    """Optimal values to within `tolerance` in the largest change of a sweep."""
    mdp = _on_device(mdp)

    def unfinished(carry):
        _, change, iteration = carry
        return (change > tolerance) & (iteration < max_iterations)

    def sweep(carry):
        values, _, iteration = carry
        new_values = jnp.max(action_values(mdp, values), axis=-1)
        return new_values, jnp.max(jnp.abs(new_values - values)), iteration + 1

    first = (jnp.zeros_like(mdp.reward[:, 0]), jnp.array(jnp.inf, mdp.reward.dtype), jnp.array(0))
    values, _, iterations = jax.lax.while_loop(unfinished, sweep, first)
    return Solution(values, jnp.argmax(action_values(mdp, values), axis=-1), iterations)


def modified_policy_iteration(
    mdp: TabularMDP,
    first: Float[Array, "S"] | None = None,
    tolerance: Float[Array, ""] | float = 1e-3,
    sweeps: int = 20,
    max_iterations: int = 10_000,
) -> Solution:
    """Optimal values by greedy steps with `sweeps` cheap evaluation sweeps between them, from any first guess.

    Stops when the bounds of MacQueen (1966) on the optimal value lie within `tolerance` of each other, which happens
    long before the values themselves stop moving; the returned values are the middle of those bounds. With
    discount 1 there are no such bounds, and it stops when the largest change is below `tolerance`.
    """
    mdp = _on_device(mdp)
    discount = mdp.discount
    reach = jnp.where(discount < 1, discount / jnp.where(discount < 1, 1 - discount, 1), 0)
    # An end is one more state with value zero; its change, zero, belongs to the bounds.
    ends = jnp.any(mdp.termination > 0)

    def greedy_step(values):
        q_values = action_values(mdp, values)
        change = jnp.max(q_values, axis=-1) - values
        low, high = jnp.min(change), jnp.max(change)
        low, high = jnp.where(ends, jnp.minimum(low, 0), low), jnp.where(ends, jnp.maximum(high, 0), high)
        gap = jnp.where(discount < 1, reach * (high - low), jnp.max(jnp.abs(change)))
        return q_values, gap, reach * (high + low) / 2

    def unfinished(carry):
        _, gap, iteration = carry
        return (gap > tolerance) & (iteration < max_iterations)

    def improve(carry):
        values, _, iteration = carry
        q_values, gap, _ = greedy_step(values)
        rows = jnp.arange(values.shape[0])
        actions = jnp.argmax(q_values, axis=-1)
        transition, reward = mdp.transition[rows, actions], mdp.reward[rows, actions]
        better = jax.lax.fori_loop(
            0, sweeps, lambda _, inner: reward + discount * transition @ inner, jnp.max(q_values, axis=-1)
        )
        # The values that met the tolerance are the ones to return, not those beyond them.
        return jnp.where(gap > tolerance, better, values), gap, iteration + 1

    start = jnp.zeros_like(mdp.reward[:, 0]) if first is None else first
    carry = (start, jnp.array(jnp.inf, mdp.reward.dtype), jnp.array(0))
    values, _, iterations = jax.lax.while_loop(unfinished, improve, carry)
    q_values, _, shift = greedy_step(values)
    # With ends the bounds are not a uniform shift of all states, and the last sweep is the better guess.
    middle = jnp.max(q_values, axis=-1) + jnp.where(ends, 0, shift)
    return Solution(middle, jnp.argmax(q_values, axis=-1), iterations)


def policy_iteration(mdp: TabularMDP, max_iterations: int = 1_000) -> Solution:
    """Optimal values by Howard's policy iteration: exact evaluation, greedy improvement, until nothing improves.

    An action is changed only where another is better by more than rounding, so that ties cannot make it cycle.
    """
    mdp = _on_device(mdp)
    actions_count = mdp.reward.shape[1]
    rounding = 16 * jnp.finfo(mdp.reward.dtype).eps

    def evaluate(actions):
        return evaluate_exact(mdp, jax.nn.one_hot(actions, actions_count, dtype=mdp.reward.dtype))

    def unfinished(carry):
        _, _, changed, iteration = carry
        return changed & (iteration < max_iterations)

    def improve(carry):
        actions, values, _, iteration = carry
        q_values = action_values(mdp, values)
        kept = jnp.take_along_axis(q_values, actions[:, None], axis=-1)[:, 0]
        better = jnp.max(q_values, axis=-1) > kept + rounding * (1 + jnp.max(jnp.abs(values)))
        new_actions = jnp.where(better, jnp.argmax(q_values, axis=-1), actions)
        return new_actions, evaluate(new_actions), jnp.any(better), iteration + 1

    first_actions = jnp.argmax(mdp.reward, axis=-1)
    first = (first_actions, evaluate(first_actions), jnp.array(True), jnp.array(0))
    actions, values, _, iterations = jax.lax.while_loop(unfinished, improve, first)
    return Solution(values, actions, iterations)


def long_run_average(mdp: TabularMDP, policy: Float[np.ndarray, "S A"]) -> float:
    """Exact average reward per step of a policy over an endless run that restarts from `start` after each end.

    The Cesaro limit of the chain's powers by repeated doubling in float64: A(2n) = (A(n) + P^n A(n)) / 2. It exists
    for periodic and multichain policies too, and after 50 doublings the remainder is far below rounding.
    """
    policy = np.asarray(policy, dtype=np.float64)
    start = np.asarray(mdp.start, dtype=np.float64)
    chain = np.einsum("sa,sat->st", policy, np.asarray(mdp.transition, dtype=np.float64))
    ends = (policy * np.asarray(mdp.termination, dtype=np.float64)).sum(-1)
    chain = chain + ends[:, None] * start
    reward = (policy * np.asarray(mdp.reward, dtype=np.float64)).sum(-1)
    average, power = np.eye(len(start)), chain / chain.sum(-1, keepdims=True)
    for _ in range(50):
        average = (average + power @ average) / 2
        power = power @ power
        # Rows stay distributions only up to rounding, which doubling would amplify.
        power /= power.sum(-1, keepdims=True)
    return float(start @ average @ reward)
