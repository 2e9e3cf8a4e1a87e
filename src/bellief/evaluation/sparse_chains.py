"""Values of chains with many states: one sparse block-diagonal system for a whole batch.

SciPy's GMRES with the inverse chain of the mean MDP as preconditioner or, where that is too large, BiCGSTAB, with an
incomplete factorisation of the mean chain where that is cheap. Both start from the mean MDP's solution, and chains that
do not converge are solved directly.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator, bicgstab, gmres, spilu, spsolve

from bellief.evaluation import chains
from bellief.evaluation.blas import one_thread

# The mean chain is factorised where its states can be ordered so that transitions lead at most so far: the work grows
# with the square. Chains without such an order mix fast, and BiCGSTAB needs few steps for them.
WIDEST_BAND = 500

# Entries of the incomplete factors below this part of the largest are dropped; at most so many times the chain's own.
DROPPED, FILL = 1e-2, 2.0

KRYLOV_STEPS, RESTARTS = 60, 20

# Steps of GMRES with the inverse of the mean chain, and how often they are taken again by those that are not solved;
# chains that need more differ so much from the mean chain that solving them directly is cheaper.
GUIDED_STEPS, GUIDED_ROUNDS = 25, 3

# Tolerance of these iterations. The inverse of the mean chain estimates the error of a solution; where a chain
# hardly ends or mixes more slowly than the mean chain, the error may be a hundred times larger.
GUIDED_TOLERANCE = 1e-10


def matrix_of(batch: chains.Batch) -> Any:
    """Transition matrices as the blocks of one sparse matrix."""
    number, states = batch.reward.shape
    size, cells = number * states, batch.cells
    first = np.searchsorted(cells.state, np.arange(states + 1))
    pointer = np.append((np.arange(number)[:, None] * first[-1] + first[:-1]).ravel(), number * first[-1])
    column = (np.arange(number)[:, None] * states + cells.following).ravel()
    fixed = sparse.csr_matrix((cells.chance.ravel(), column, pointer), (size, size))
    draw, state, following, chance = batch.entries
    return fixed + sparse.csr_matrix((chance, (draw * states + state, draw * states + following)), (size, size))


def incomplete_factors(chain: Any, discount: float) -> Any:
    """Incomplete LU factors of I - discount * chain for a sparse chain; None where they would be expensive."""
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


def solve(
    batch: chains.Batch,
    discount: float,
    constant: Float[np.ndarray, "n S"],
    guide: chains.Guide | None,
    transposed: bool,
) -> Float[np.ndarray, "n S"]:
    """x = constant + discount * P x for every chain P of the batch, or with P transposed."""
    matrix = matrix_of(batch)
    matrix = matrix.T.tocsr() if transposed else matrix
    constant = np.ascontiguousarray(constant)
    if guide is None and constant.shape[1] <= chains.INVERSE_STATES:
        found, unsolved = np.empty(constant.shape), np.arange(len(constant))
    elif guide is None or guide.inverse is None:
        found, unsolved = _without_inverse(matrix, discount, constant, guide, transposed)
    elif _is_concentrated(matrix, *constant.shape):
        found, unsolved = np.empty(constant.shape), np.arange(len(constant))
    else:
        inverse = guide.inverse.T if transposed else guide.inverse
        found, unsolved = _with_inverse(matrix, discount, constant, guide.solution, inverse)
    for draw in unsolved:
        found[draw] = _direct(matrix, discount, constant[draw], int(draw))
    return found


def roll_out(batch: chains.Batch, discount: float, horizon: int) -> Float[np.ndarray, "n S"]:
    """Values of so many steps."""
    matrix, reward = discount * matrix_of(batch), batch.reward.ravel()
    found = np.zeros(reward.shape)
    for _ in range(horizon):
        found = reward + matrix @ found
    return found.reshape(batch.reward.shape)


def _without_inverse(matrix: Any, discount: float, constant, guide: chains.Guide | None, transposed: bool):
    """BiCGSTAB: with many states GMRES would spend its time on orthogonalising long vectors. The solutions, and which
    draws have none yet.
    """
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
        found, _ = bicgstab(
            operator, constant.ravel(), x0=first.ravel().copy(), M=guided, rtol=chains.TOLERANCE, maxiter=most
        )
    residual = (constant.ravel() - system(found)).reshape(shape)
    goal = 10 * chains.TOLERANCE * np.linalg.norm(constant, axis=-1)
    return found.reshape(shape), np.flatnonzero(~(np.linalg.norm(residual, axis=-1) <= goal))


def _with_inverse(matrix: Any, discount: float, constant, solution, inverse: Float[np.ndarray, "S S"]):
    """GMRES with the inverse of the mean chain, again for the draws that need more steps than the others. The
    solutions, and which draws have none yet.
    """
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
        # An estimate of the solution's error: the residual itself says little where few states are rewarded.
        missing = np.linalg.norm(precondition(wanted - system(better)).reshape(shape), axis=-1)
        left = np.flatnonzero(~(missing <= 10 * GUIDED_TOLERANCE * np.linalg.norm(found[unsolved], axis=-1)))
        unsolved = unsolved[left]
        if len(left) == 0:
            break
        matrix = _blocks(matrix, left, states)
    return found, unsolved


def _blocks(matrix: Any, draws: Int[np.ndarray, "k"], states: int) -> Any:
    """Some of the blocks of a block-diagonal matrix."""
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
    """One chain, solved directly for the states that are both reached and left.

    The values of the others follow: a constant, or a sum over these.
    """
    states = len(constant)
    block = slice(draw * states, (draw + 1) * states)
    chain = matrix[block, block]
    filled = np.diff(chain.indptr) > 0
    coupled = np.flatnonzero(filled & (np.bincount(chain.indices, minlength=states) > 0))
    found = np.where(filled, 0.0, constant)
    inner, wanted = chain[coupled][:, coupled], (constant + discount * (chain @ found))[coupled]
    # SuperLU may return wrong numbers for chains with loops that never end.
    if len(coupled) <= chains.INVERSE_STATES:
        found[coupled] = np.linalg.solve(np.eye(len(coupled)) - discount * inner.toarray(), wanted)
    else:
        found[coupled] = spsolve((sparse.identity(len(coupled)) - discount * inner).tocsc(), wanted)
    return constant + discount * (chain @ found)
