"""The mean MDP of a belief about rows: every probability and every mean reward at its posterior mean.

>>> import numpy as np
>>> import bellief
>>> from bellief.evaluation.problem import prepare
>>> data = bellief.Transitions.from_arrays([0, 1] * 20, [0, 0] * 20, [2.0, 0.0] * 20, [1, 0] * 20)
>>> mdp = prepare(data, discount=0.5).mean_mdp
>>> mdp.values(np.ones((2, 1)), discount=0.5).round(2).tolist()
[2.67, 1.34]
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bellief.evaluation import chains, rewards, rows
from bellief.evaluation.blas import one_thread
from bellief.evaluation.rows import Rows

# Up to so many states systems of equations are solved as tables.
TABLE_STATES = 3_000


# Up to so many entries rows are listed as a table, which spares the import of SciPy.
SMALL = 100_000


def _matrix(held: Rows, chance: Float[np.ndarray, "C"]) -> Any:
    """Probabilities of the cells as a matrix over rows and outcomes."""
    size = (len(held.row), held.outcomes)
    if size[0] * size[1] <= SMALL:
        table = np.zeros(size)
        table[held.row_of_cell(), held.outcome] = chance
        return table
    from scipy import sparse

    return sparse.csr_matrix((chance, held.outcome, held.first), size)


class MeanMDP(NamedTuple):
    """Row r leads to outcome o with probability `listed[r, o] + spread[r] * (local[s, o] + elsewhere[s] * share[o])`.

    s is the state of the row; `local` is None where no base is taken from the log. Outcomes beyond the states are ends.
    """

    listed: Any  # [R, O], a SciPy matrix in compressed rows unless it is small
    spread: Float[np.ndarray, "R"]
    local: Any  # [S, O], likewise
    elsewhere: Float[np.ndarray, "S"]
    share: Float[np.ndarray, "O"]
    reward: Float[np.ndarray, "R"]
    states: int

    @classmethod
    def of(cls, held: Rows, belief: rewards.Rewards, states: int) -> "MeanMDP":
        """The mean of the belief about all rows."""
        chance, rest = rows.mean(held)
        listed = _matrix(held, chance)
        local, elsewhere, share = None, np.ones(states), np.full(held.outcomes, 1 / held.outcomes)
        if held.base is not None:
            local = held.base.table() if isinstance(listed, np.ndarray) else held.base.matrix()
            elsewhere, share = held.base.elsewhere, held.base.share
        reward = belief.location if belief.outcomes is None else _mean_rewards(held, belief, chance, rest, states)
        return cls(listed, rest, local, elsewhere, share, reward, states)

    def expected(self, values: Float[np.ndarray, "S"]) -> Float[np.ndarray, "R"]:
        """Expected value of the next state after every row."""
        padded = np.pad(values, (0, self.listed.shape[1] - self.states))
        around = self.elsewhere * (self.share @ padded)
        if self.local is not None:
            around = around + self.local @ padded
        return self.listed @ padded + self.spread * np.repeat(around, len(self.spread) // self.states)

    def _chain(self, policy: Float[np.ndarray, "S A"]) -> "_Chain":
        states, actions = policy.shape
        share = self.share[:states]
        if isinstance(self.listed, np.ndarray):
            listed = np.einsum("sa,sat->st", policy, self.listed[:, :states].reshape(states, actions, states))
            spread, reward = (field.reshape(policy.shape) for field in (self.spread, self.reward))
            around = (policy * spread).sum(-1)
            if self.local is not None:
                listed = listed + around[:, None] * self.local[:, :states]
            return _Chain(listed, around * self.elsewhere, share, (policy * reward).sum(-1))
        from scipy import sparse

        state, action = np.nonzero(policy)
        weights = sparse.csr_matrix(
            (policy[state, action], (state, state * actions + action)), (states, states * actions)
        )
        listed, around = (weights @ self.listed)[:, :states], weights @ self.spread
        if self.local is not None:
            listed = listed + sparse.diags_array(around) @ self.local[:, :states]
        return _Chain(listed.tocsr(), around * self.elsewhere, share, weights @ self.reward)

    def values(
        self, policy: Float[np.ndarray, "S A"], discount: float, horizon: int | None = None, shared: float = 0.0
    ) -> Float[np.ndarray, "S"]:
        """Values of a policy, of an endless horizon or of so many steps.

        What all rewards have in common (`shared`, where no episode ends) is not solved for, but added in closed form.
        """
        chain = self._chain(policy)
        if horizon is None:
            return chain.solve(chain.reward - shared, discount) + shared / (1 - min(discount, 1 - chains.BARELY))
        found = np.zeros(self.states)
        for _ in range(horizon):
            found = chain.reward + discount * chain.forward(found)
        return found

    def visits(
        self, policy: Float[np.ndarray, "S A"], discount: float, start: Float[np.ndarray, "S"], horizon: int | None
    ) -> Float[np.ndarray, "S"]:
        """Expected discounted number of visits of each state."""
        chain = self._chain(policy)
        if horizon is None:
            return chain.solve(start, discount, transposed=True)
        found, mass = np.zeros(self.states), start
        for _ in range(horizon):
            found = found + mass
            mass = discount * chain.backward(mass)
        return found

    def steps_until(self, policy: Float[np.ndarray, "S A"], discount: float, weight: float, most: int) -> int:
        """After how many steps what is still to come has at most this weight, from any state."""
        chain, left = self._chain(policy), np.ones(self.states)
        for step in range(1, most):
            left = discount * chain.forward(left)
            if left.max() <= weight:
                return step
        return most

    def values_less(
        self, policy: Float[np.ndarray, "S A"], inverse: Float[np.ndarray, "S S"], shared: float
    ) -> Float[np.ndarray, "S"]:
        """Values where every reward is smaller by `shared`, given the inverse of the chain's system."""
        return inverse @ (self._chain(policy).reward - shared)

    def guide(self, policy: Float[np.ndarray, "S A"], discount: float) -> chains.Guide:
        """What helps to solve chains that are similar to this one."""
        chain = self._chain(policy)
        if self.states > chains.INVERSE_STATES:
            from bellief.evaluation.sparse_chains import incomplete_factors

            return chains.Guide(chain.solve(chain.reward, discount), None, incomplete_factors(chain.listed, discount))
        inverse = np.linalg.inv(np.eye(self.states) - min(discount, 1 - chains.BARELY) * chain.table())
        return chains.Guide(inverse @ chain.reward, inverse)

    def best_actions(self, allowed: Bool[np.ndarray, "S A"], discount: float, rounds: int = 100) -> np.ndarray:
        """The best allowed action in each state, by policy iteration."""
        rewarded = np.where(allowed, self.reward.reshape(allowed.shape), -np.inf)
        best = rewarded.argmax(-1)
        for _ in range(rounds):
            values = self.values(np.eye(allowed.shape[1])[best], discount)
            gains = rewarded + discount * self.expected(values).reshape(allowed.shape)
            kept = np.take_along_axis(gains, best[:, None], 1)[:, 0]
            better = gains.max(-1) > kept + 1e-6 * (1 + np.abs(values).max())
            if not better.any():
                break
            best = np.where(better, gains.argmax(-1), best)
        return best


def _mean_rewards(held: Rows, belief: rewards.Rewards, chance, rest, states: int) -> Float[np.ndarray, "R"]:
    """Expected reward of every row: of its seen outcomes, and of the mass that is spread over all."""
    paid, lengths = belief.outcomes, np.diff(held.first)
    assert paid is not None
    level = np.zeros(held.outcomes) if belief.level is None else belief.level
    scale = np.ones(held.outcomes) if belief.scale is None else belief.scale
    both = np.stack([level, scale])
    around = np.repeat(both.mean(-1)[:, None], states, 1) if held.base is None else held.base.mean_over(both)
    around = np.repeat(around, len(held.row) // states, -1)
    pair, spread = np.repeat(belief.location, lengths), np.repeat(rest, lengths) * held.base_mass()
    level, scale = level[held.outcome], scale[held.outcome]
    seen = (chance + spread) * (level + scale * (paid.location + paid.share * pair))
    # The spread mass on seen outcomes was counted as if they were unseen.
    seen -= spread * (level + scale * pair)
    return rest * (around[0] + around[1] * belief.location) + rows.sums(seen, held.first)


class _Chain(NamedTuple):
    """The chain that a policy makes of the mean MDP."""

    listed: Any
    spread: Float[np.ndarray, "S"]
    share: Float[np.ndarray, "S"]
    reward: Float[np.ndarray, "S"]

    def table(self) -> Float[np.ndarray, "S S"]:
        listed = self.listed if isinstance(self.listed, np.ndarray) else self.listed.toarray()
        return listed + self.spread[:, None] * self.share

    def forward(self, values: Float[np.ndarray, "S"]) -> Float[np.ndarray, "S"]:
        return self.listed @ values + self.spread * (self.share @ values)

    def backward(self, mass: Float[np.ndarray, "S"]) -> Float[np.ndarray, "S"]:
        return self.listed.T @ mass + self.share * (self.spread @ mass)

    def solve(self, constant: Float[np.ndarray, "S"], discount: float, transposed: bool = False):
        """x = constant + discount * P x, or with P transposed."""
        states, discount = len(constant), min(discount, 1 - chains.BARELY)
        if states <= TABLE_STATES:
            system = np.eye(states) - discount * self.table()
            return np.linalg.solve(system.T if transposed else system, constant)
        from scipy.sparse.linalg import LinearOperator, bicgstab

        step = self.backward if transposed else self.forward
        operator = LinearOperator((states, states), matvec=lambda x: x - discount * step(x), dtype=np.float64)
        with one_thread():  # threads of BLAS would wait for one another at every product of two vectors
            return bicgstab(operator, constant, x0=constant.copy(), rtol=chains.TOLERANCE, maxiter=2_000)[0]
