"""Markov chains that a policy makes of sampled MDPs, a batch at a time, and their values.

Few states: tables and batched LAPACK. Many: one sparse block-diagonal system for the whole batch, solved by SciPy's
GMRES with the inverse chain of the mean MDP as preconditioner or, where that is too large, by BiCGSTAB, with an
incomplete factorisation of the mean chain where that is cheap; both start from the mean MDP's solution, and whatever
does not converge is solved directly.

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

from bellief.evaluation.blas import one_thread

# Up to so many states tables and batched LAPACK are used. With 1,000 draws and ten visits of every pair, tables took
# 0.15 s and the sparse way 0.12 s at 60 states, 0.40 and 0.18 s at 100.
DENSE_STATES = 50

# Up to so many states the inverse of the mean chain is worth computing as a preconditioner.
INVERSE_STATES = 3_000

# The mean chain is factorised where its states can be ordered so that transitions lead at most so far: the work grows
# with the square. Chains without such an order mix fast, and BiCGSTAB needs few steps for them.
WIDEST_BAND = 500

# Entries of the incomplete factors below this part of the largest are dropped; at most so many times the chain's own.
DROPPED, FILL = 1e-2, 2.0

# Relative residual of the iterative solution.
TOLERANCE = 1e-7
KRYLOV_STEPS = 60

# Steps of GMRES with the inverse of the mean chain, and how often they are taken again by those that are not solved;
# chains that need more differ so much from the mean chain that solving them directly is cheaper.
GUIDED_STEPS, GUIDED_ROUNDS = 25, 3

# Tolerance of these iterations. The inverse of the mean chain tells how much is missing from a solution; where a chain
# hardly ends or mixes more slowly than the mean chain, a hundred times more may be missing.
GUIDED_TOLERANCE = 1e-10

# Chance of an end, per step, of a chain that has none (also see `_solve`).
BARELY = 1e-10
RESTARTS = 20


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

    def matrix(self) -> Any:
        """Transition matrices as the blocks of one sparse matrix."""
        from scipy import sparse

        number, states = self.reward.shape
        size = number * states
        first = np.searchsorted(self.cells.state, np.arange(states + 1))
        pointer = np.append((np.arange(number)[:, None] * first[-1] + first[:-1]).ravel(), number * first[-1])
        column = (np.arange(number)[:, None] * states + self.cells.following).ravel()
        fixed = sparse.csr_matrix((self.cells.chance.ravel(), column, pointer), (size, size))
        draw, state, following, chance = self.entries
        return fixed + sparse.csr_matrix((chance, (draw * states + state, draw * states + following)), (size, size))


class Guide(NamedTuple):
    """The chain of the mean MDP: its solution, from which iterations start, and the inverse of its system or, with
    many states, an incomplete factorisation (SciPy's `SuperLU`).
    """

    solution: Float[np.ndarray, "S"]
    inverse: Float[np.ndarray, "S S"] | None
    factors: Any = None


def incomplete_factors(chain: Any, discount: float) -> Any:
    """Incomplete LU factors of I - discount * chain for a sparse chain; None where they would be expensive."""
    from scipy import sparse
    from scipy.sparse.csgraph import reverse_cuthill_mckee
    from scipy.sparse.linalg import spilu

    chain = sparse.csr_matrix(chain)
    place = np.argsort(reverse_cuthill_mckee(chain))
    listed = chain.tocoo()
    # Some transitions lead far in any order, such as back to a start; factors without them are as useful.
    far = np.abs(place[listed.row] - place[listed.col])
    if len(far) and np.quantile(far, 0.99) > WIDEST_BAND:
        return None
    near = far <= WIDEST_BAND
    kept = sparse.csc_matrix((listed.data[near], (listed.row[near], listed.col[near])), chain.shape)
    system = (sparse.identity(chain.shape[0], format="csc") - discount * kept).tocsc()
    try:
        return spilu(system, drop_tol=DROPPED, fill_factor=FILL)
    except RuntimeError:  # singular, such as a state that leads only to itself under discount 1
        return None


def is_dense(states: int) -> bool:
    """Whether chains of so many states are solved as tables."""
    return states <= DENSE_STATES


def values(
    batch: Batch, discount: float, horizon: int | None = None, guide: Guide | None = None
) -> Float[np.ndarray, "n S"]:
    """Values of every state: of an endless horizon, or of so many steps."""
    if horizon is not None:
        return _finite(batch, discount, horizon)
    return _solve(batch, discount, batch.reward, guide, transposed=False)


def visits(
    batch: Batch, discount: float, start: Float[np.ndarray, "S"], guide: Guide | None = None
) -> Float[np.ndarray, "n S"]:
    """Expected discounted number of visits of each state from a distribution over first states."""
    return _solve(batch, discount, np.broadcast_to(start, batch.reward.shape), guide, transposed=True)


def _finite(batch: Batch, discount: float, horizon: int) -> Float[np.ndarray, "n S"]:
    number, states = batch.reward.shape
    if is_dense(states):
        chain = discount * batch.table()
        found = np.zeros((number, states))
        for _ in range(horizon):
            found = batch.reward + np.matmul(chain, found[..., None])[..., 0]
        return found
    matrix, reward = discount * batch.matrix(), batch.reward.ravel()
    flat = np.zeros(reward.shape)
    for _ in range(horizon):
        flat = reward + matrix @ flat
    return flat.reshape(number, states)


def _solve(batch: Batch, discount: float, constant, guide: Guide | None, transposed: bool) -> Float[np.ndarray, "n S"]:
    """x = constant + discount * P x for every chain P of the batch, or with P transposed.

    Under discount 1 a chain that never ends has no solution, and one that hardly ends has one that rounding decides.
    With a chance of `BARELY` to end at every step a loop that pays nothing is worth nothing, and one that pays is worth
    a huge number of the right sign.
    """
    states, discount = batch.reward.shape[1], min(discount, 1 - BARELY)
    if is_dense(states):
        system = np.eye(states) - discount * batch.table()
        system = np.swapaxes(system, -1, -2) if transposed else system
        return _lapack(system, constant)
    matrix = batch.matrix()
    matrix = matrix.T.tocsr() if transposed else matrix
    if guide is None and states <= INVERSE_STATES:
        return np.stack([_direct(matrix, discount, one, draw) for draw, one in enumerate(constant)])
    return _iterate(matrix, discount, np.ascontiguousarray(constant), guide, transposed)


def _lapack(system: Float[np.ndarray, "*n S S"], constant: Float[np.ndarray, "*n S"]) -> Float[np.ndarray, "*n S"]:
    """Solve dense systems."""
    return np.linalg.solve(system, constant[..., None])[..., 0]


def _iterate(matrix: Any, discount: float, constant, guide: Guide | None, transposed: bool) -> Float[np.ndarray, "n S"]:
    if guide is None or guide.inverse is None:
        found, unsolved = _without_inverse(matrix, discount, constant, guide, transposed)
    elif _is_concentrated(matrix, *constant.shape):
        found, unsolved = np.empty(constant.shape), np.arange(len(constant))
    else:
        inverse = guide.inverse.T if transposed else guide.inverse
        found, unsolved = _with_inverse(matrix, discount, constant, guide.solution, inverse)
    for draw in unsolved:
        found[draw] = _direct(matrix, discount, constant[draw], int(draw))
    return found


def _without_inverse(matrix: Any, discount: float, constant, guide: Guide | None, transposed: bool):
    """BiCGSTAB: with many states GMRES would spend its time on orthogonalising long vectors. The solutions, and which
    draws have none yet.
    """
    from scipy.sparse.linalg import LinearOperator, bicgstab

    shape, size = constant.shape, constant.size
    factors: Any = None if guide is None else guide.factors
    first = constant if guide is None else np.broadcast_to(guide.solution, shape)

    def system(x: np.ndarray) -> np.ndarray:
        return x - discount * (matrix @ x)

    def precondition(x: np.ndarray) -> np.ndarray:
        return factors.solve(x.reshape(shape).T.copy(), "T" if transposed else "N").T.ravel()

    operator = LinearOperator((size, size), matvec=system, dtype=np.float64)
    guided = None if factors is None else LinearOperator((size, size), matvec=precondition, dtype=np.float64)
    most = KRYLOV_STEPS * RESTARTS
    with one_thread():
        found, _ = bicgstab(operator, constant.ravel(), x0=first.ravel().copy(), M=guided, rtol=TOLERANCE, maxiter=most)
    residual = (constant.ravel() - system(found)).reshape(shape)
    goal = 10 * TOLERANCE * np.linalg.norm(constant, axis=-1)
    return found.reshape(shape), np.flatnonzero(~(np.linalg.norm(residual, axis=-1) <= goal))


def _with_inverse(matrix: Any, discount: float, constant, solution, inverse: Float[np.ndarray, "S S"]):
    """GMRES with the inverse of the mean chain, again for the draws that need more steps than the others. The
    solutions, and which draws have none yet.
    """
    from scipy.sparse.linalg import LinearOperator, gmres

    found = np.broadcast_to(solution, constant.shape).copy()
    unsolved, states = np.arange(len(found)), constant.shape[1]
    for _ in range(GUIDED_ROUNDS):
        shape, wanted = (len(unsolved), states), constant[unsolved].ravel()

        def system(x: np.ndarray) -> np.ndarray:
            return x - discount * (matrix @ x)  # noqa: B023  # used within the round

        def precondition(x: np.ndarray) -> np.ndarray:
            return (x.reshape(shape) @ inverse.T).ravel()  # noqa: B023

        operator, guided = (
            LinearOperator((wanted.size, wanted.size), matvec=one, dtype=np.float64) for one in (system, precondition)
        )
        options = {"rtol": GUIDED_TOLERANCE, "restart": GUIDED_STEPS, "maxiter": 1}
        better, _ = gmres(operator, wanted, x0=found[unsolved].ravel(), M=guided, **options)
        found[unsolved] = better.reshape(shape)
        # About what is missing from the solution: the residual itself says little where few states are rewarded.
        missing = np.linalg.norm(precondition(wanted - system(better)).reshape(shape), axis=-1)
        left = np.flatnonzero(~(missing <= 10 * GUIDED_TOLERANCE * np.linalg.norm(found[unsolved], axis=-1)))
        unsolved = unsolved[left]
        if len(left) == 0:
            break
        matrix = _blocks(matrix, left, states)
    return found, unsolved


def _blocks(matrix: Any, draws: Int[np.ndarray, "k"], states: int) -> Any:
    """Some of the blocks of a block-diagonal matrix."""
    from scipy import sparse

    kept = matrix[(draws[:, None] * states + np.arange(states)).ravel()]
    draw, column = np.divmod(kept.indices, states)
    size = len(draws) * states
    return sparse.csr_matrix((kept.data, np.searchsorted(draws, draw) * states + column, kept.indptr), (size, size))


def _is_concentrated(matrix: Any, number: int, states: int) -> bool:
    """Whether so few states of each chain have both a way in and a way out that solving these directly is cheaper than
    iterations over all.
    """
    reached = np.bincount(matrix.indices, minlength=number * states) > 0
    coupled = np.count_nonzero(reached & (np.diff(matrix.indptr) > 0)) / number
    return bool(coupled**3 <= GUIDED_STEPS * states**2)


def _direct(matrix: Any, discount: float, constant, draw: int) -> Float[np.ndarray, "S"]:
    """One chain by itself, by a direct method for the states with a way in and a way out.

    What the others have follows: it is a constant, or a sum over these.
    """
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    states = len(constant)
    block = slice(draw * states, (draw + 1) * states)
    chain = matrix[block, block]
    filled = np.diff(chain.indptr) > 0
    coupled = np.flatnonzero(filled & (np.bincount(chain.indices, minlength=states) > 0))
    found = np.where(filled, 0.0, constant)
    inner, wanted = chain[coupled][:, coupled], (constant + discount * (chain @ found))[coupled]
    # SuperLU may return wrong numbers for chains with loops that never end.
    if len(coupled) <= INVERSE_STATES:
        found[coupled] = _lapack(np.eye(len(coupled)) - discount * inner.toarray(), wanted)
    else:
        found[coupled] = spsolve((sparse.identity(len(coupled)) - discount * inner).tocsc(), wanted)
    return constant + discount * (chain @ found)
