"""Markov chains that a policy makes of sampled MDPs, a batch at a time, and their values.

Few states: tables and batched LAPACK. Many: one sparse block-diagonal system for the whole batch
(`evaluation.sparse_chains`), which starts from the solution of the mean MDP, the guide.

>>> import numpy as np
>>> from bellief.evaluation import chains
>>> cells = chains.Cells.of(np.array([0, 1]), np.array([1, 0]), np.array([[1.0, 1.0]]))
>>> none = chains.Entries(*3 * [np.zeros(0, int)], np.zeros(0))
>>> batch = chains.Batch(cells, none, reward=np.array([[2.0, 0.0]]))  # one MDP; two states lead to one another
>>> chains.values(batch, discount=0.5).round(3).tolist()
[[2.667, 1.333]]
>>> chains.values(batch, discount=0.5, horizon=1).tolist()
[[2.0, 0.0]]
>>> chains.visits(batch, 0.5, start=np.array([1.0, 0.0])).round(3).tolist()
[[1.333, 0.667]]
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

# Up to so many states tables and batched LAPACK are used. With 1,000 draws and ten visits of every pair, tables took
# 0.15 s and the sparse way 0.12 s at 60 states, 0.40 and 0.18 s at 100.
DENSE_STATES = 50

# Up to so many states the inverse of the mean chain is worth computing as a preconditioner.
INVERSE_STATES = 3_000

# Relative residual of the iterative solution.
TOLERANCE = 1e-7

# Chance of an end, per step, of a chain that has none (also see `_solve`).
BARELY = 1e-10


class Cells(NamedTuple):
    """Transitions that every draw has: from `state` to `following`, sorted by both, with a chance in each draw."""

    state: Int[np.ndarray, "C"]
    following: Int[np.ndarray, "C"]
    chance: Float[np.ndarray, "n C"]

    @classmethod
    def of(cls, state: np.ndarray, following: np.ndarray, chance: np.ndarray) -> "Cells":
        """Transitions in any order; those between the same states are added up."""
        every = np.arange(len(state))
        pattern = Pattern.of(state, following, every, int(following.max(initial=0)) + 1)
        return pattern.cells(chance, np.ones(len(state)))


class Pattern(NamedTuple):
    """Where cells of rows, in any order, go among `Cells`: sorted, those between the same states as one, and without
    those that lead to an end.
    """

    order: Int[np.ndarray, "T"]
    row: Int[np.ndarray, "T"]
    first: Int[np.ndarray, "C"]
    state: Int[np.ndarray, "C"]
    following: Int[np.ndarray, "C"]

    @classmethod
    def of(cls, state: np.ndarray, following: np.ndarray, row: np.ndarray, states: int) -> "Pattern":
        """The pattern of cells that lead from a state by a row; outcomes beyond the states are ends."""
        inside = np.flatnonzero(following < states)
        order = inside[np.lexsort((following[inside], state[inside]))]
        state, following = state[order], following[order]
        first = np.flatnonzero((np.diff(state, prepend=-1) != 0) | (np.diff(following, prepend=-1) != 0))
        return cls(order, row[order], first, state[first], following[first])

    def cells(self, chance: Float[np.ndarray, "n T"], weight: Float[np.ndarray, "R"]) -> Cells:
        """The cells, given the chance of each within its row and how often the rows are taken."""
        chance = chance[:, self.order]
        chance *= weight[self.row]
        if len(self.first) < len(self.order):
            chance = np.add.reduceat(chance, self.first, axis=-1)
        return Cells(self.state, self.following, chance)


class Entries(NamedTuple):
    """Transitions of single draws, in any order."""

    draw: Int[np.ndarray, "E"]
    state: Int[np.ndarray, "E"]
    following: Int[np.ndarray, "E"]
    chance: Float[np.ndarray, "E"]


class Batch(NamedTuple):
    """Chains of `n` draws. What is missing from a row to one is the chance that the episode ends."""

    cells: Cells
    entries: Entries
    reward: Float[np.ndarray, "n S"]

    def table(self) -> Float[np.ndarray, "n S S"]:
        """Transition matrices."""
        number, states = self.reward.shape
        draw, state, following, chance = self.entries
        table = np.bincount((draw * states + state) * states + following, chance, number * states * states)
        # Without entries NumPy counts in whole numbers.
        table = table.reshape(number, states, states).astype(np.float64, copy=False)
        table[:, self.cells.state, self.cells.following] += self.cells.chance
        return table


class Guide(NamedTuple):
    """The chain of the mean MDP: its solution, from which iterations start, and the inverse of its system or, with
    many states, an incomplete factorisation (SciPy's `SuperLU`).
    """

    solution: Float[np.ndarray, "S"]
    inverse: Float[np.ndarray, "S S"] | None
    factors: Any = None


def is_dense(states: int) -> bool:
    """Whether chains of so many states are solved as tables."""
    return states <= DENSE_STATES


def values(
    batch: Batch, discount: float, horizon: int | None = None, guide: Guide | None = None
) -> Float[np.ndarray, "n S"]:
    """Values of every state: of an endless horizon, or of so many steps."""
    if horizon is None:
        return _solve(batch, discount, batch.reward, guide, transposed=False)
    if not is_dense(batch.reward.shape[1]):
        from bellief.evaluation.sparse_chains import roll_out

        return roll_out(batch, discount, horizon)
    chain, found = discount * batch.table(), np.zeros(batch.reward.shape)
    for _ in range(horizon):
        found = batch.reward + np.matmul(chain, found[..., None])[..., 0]
    return found


def visits(
    batch: Batch, discount: float, start: Float[np.ndarray, "S"], guide: Guide | None = None
) -> Float[np.ndarray, "n S"]:
    """Expected discounted number of visits of each state from a distribution over first states."""
    return _solve(batch, discount, np.broadcast_to(start, batch.reward.shape), guide, transposed=True)


def _solve(batch: Batch, discount: float, constant, guide: Guide | None, transposed: bool) -> Float[np.ndarray, "n S"]:
    """x = constant + discount * P x for every chain P of the batch, or with P transposed.

    Under discount 1 a chain that never ends has no solution, and one that hardly ends has one that rounding decides.
    With a chance of `BARELY` to end at every step a loop that pays nothing is worth nothing, and one that pays is worth
    a huge number of the right sign.
    """
    states, discount = batch.reward.shape[1], min(discount, 1 - BARELY)
    if not is_dense(states):
        from bellief.evaluation import sparse_chains

        return sparse_chains.solve(batch, discount, constant, guide, transposed)
    system = np.eye(states) - discount * batch.table()
    system = np.swapaxes(system, -1, -2) if transposed else system
    return np.linalg.solve(system, constant[..., None])[..., 0]
