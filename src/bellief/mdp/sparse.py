"""Known models with very many states: rows that list a few outcomes, and iterative solutions.

NumPy and SciPy, not JAX: what is computed here is one sparse matrix times a vector, over and over.

>>> import numpy as np
>>> import scipy.sparse
>>> from bellief.mdp import sparse
>>> leads = scipy.sparse.csr_array([[0, 0.8], [0.8, 0]])  # two states; 0.1 to either whatever happens
>>> mdp = sparse.SparseMDP(leads, spread=np.array([0.1, 0.1]), reward=np.array([1.0, 0.0]))
>>> sparse.expected(mdp, np.array([10.0, 0.0])).tolist()
[1.0, 9.0]
>>> chain = sparse.under_policy(mdp, sparse.as_weights(np.ones((2, 1))))
>>> isinstance(chain, sparse.Chain), sparse.evaluate(chain, discount=0.5).round(3).tolist()
(True, [1.357, 0.643])
>>> sparse.evaluate_finite(chain, discount=0.5, horizon=1).tolist()
[1.0, 0.0]
>>> sparse.occupancy(chain, discount=0.5, start=np.array([1.0, 0.0])).sum().round(3).item()
2.0
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import sparse

# The largest change a Bellman backup would still make to a solution, as part of a typical reward; divided by
# 1 - discount it bounds the solution's error.
TOLERANCE = 1e-7
KRYLOV_STEPS = 2_000
SWEEPS = 200_000


class SparseMDP(NamedTuple):
    """A finite MDP, or those rows of it that are needed. Row r leads to state t with probability
    `excess[r, t] + spread[r]`: what is listed is in the sparse matrix, and the rest is spread evenly over all
    states. What is missing to one is the end of the episode.
    """

    excess: Any  # a SciPy matrix [R, S] in compressed rows
    spread: Float[np.ndarray, "R"]
    reward: Float[np.ndarray, "R"]


def expected(mdp: SparseMDP, values: Float[np.ndarray, "S"]) -> Float[np.ndarray, "R"]:
    """Expected value of the next state after every row."""
    return mdp.excess @ values + mdp.spread * values.sum()


class Chain(NamedTuple):
    """The Markov chain that a policy makes of an MDP: `excess[s, t] + spread[s]`, and the mean reward."""

    excess: Any
    spread: Float[np.ndarray, "S"]
    reward: Float[np.ndarray, "S"]

    def forward(self, values: np.ndarray) -> np.ndarray:
        """Expected next value from every state."""
        return self.excess @ values + self.spread * values.sum()

    def backward(self, mass: np.ndarray) -> np.ndarray:
        """Where a mass on states is after one step."""
        return self.excess.T @ mass + (self.spread @ mass)


def under_policy(mdp: SparseMDP, weights: Any) -> Chain:
    """The chain of a policy; `weights` is a sparse matrix [S, R] of the rows' probabilities in each state."""
    return Chain(weights @ mdp.excess, weights @ mdp.spread, weights @ mdp.reward)


def evaluate(chain: Chain, discount: float, guess: np.ndarray | None = None) -> Float[np.ndarray, "S"]:
    """Infinite-horizon values. `guess` (the values of a similar chain) saves most of the work."""
    return _solve(chain.forward, chain.reward, discount, guess)


def evaluate_finite(chain: Chain, discount: float, horizon: int) -> Float[np.ndarray, "S"]:
    """Values of so many steps."""
    values = np.zeros_like(chain.reward)
    for _ in range(horizon):
        values = chain.reward + discount * chain.forward(values)
    return values


def occupancy(
    chain: Chain, discount: float, start: Float[np.ndarray, "S"], guess: np.ndarray | None = None
) -> Float[np.ndarray, "S"]:
    """Expected discounted number of visits of each state, from a distribution over first states."""
    return _solve(chain.backward, start, discount, guess)


def _solve(step, constant: np.ndarray, discount: float, guess: np.ndarray | None) -> np.ndarray:
    """x = constant + discount * step(x): BiCGSTAB, then plain iteration until the last change is small enough."""
    goal = TOLERANCE * (float(np.sqrt(np.mean(constant**2))) or 1.0)
    first = constant if guess is None else guess
    solution = _bicgstab(lambda x: x - discount * step(x), constant, first, goal)
    if not np.isfinite(solution).all():
        solution = first
    for _ in range(SWEEPS):
        better = constant + discount * step(solution)
        if np.abs(better - solution).max() <= goal:
            return better
        solution = better
    return solution


def _dot(first: np.ndarray, second: np.ndarray) -> Any:
    # Not `@`: BLAS would start its threads for every short product, which costs more than the product.
    return np.einsum("i,i->", first, second)


def _bicgstab(apply, constant: np.ndarray, solution: np.ndarray, goal: float) -> np.ndarray:
    """Solve apply(x) = constant by van der Vorst's (1992) method, until no residual is above the goal."""
    residual = constant - apply(solution)
    shadow, direction = residual, residual
    product = _dot(shadow, residual)
    with np.errstate(all="ignore"):  # a breakdown gives infinities, which the caller looks for
        for _ in range(KRYLOV_STEPS):
            if not np.abs(residual).max() > goal:
                break
            image = apply(direction)
            length = product / _dot(shadow, image)
            half = residual - length * image
            half_image = apply(half)
            turn = _dot(half_image, half) / _dot(half_image, half_image)
            solution = solution + length * direction + turn * half
            residual = half - turn * half_image
            new_product = _dot(shadow, residual)
            direction = residual + (new_product / product) * (length / turn) * (direction - turn * image)
            product = new_product
    return solution


def as_weights(policy: Float[np.ndarray, "S A"]) -> Any:
    """A policy over an MDP that has all S * A rows, state by state, as weights [S, S * A]."""
    states, actions = policy.shape
    state, action = np.nonzero(policy)
    return sparse.csr_matrix((policy[state, action], (state, state * actions + action)), (states, states * actions))
