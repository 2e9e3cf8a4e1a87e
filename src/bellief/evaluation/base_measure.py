"""Where unseen outcomes of a pair lead: the base measure of its row, estimated from the log.

The outcomes of other actions in the same state are better evidence about an action than outcomes elsewhere, and a state
that was seen a few times may still lead where the log as a whole leads. So the base of every pair of state s is

    m_s = (counts of s + v g) / (sum of the counts of s + v),    g = (counts of the log + 1 / O) / (their sum + 1),

with counts over outcomes (next state, terminated), O of them, and a weight v. An outcome counts once for each action
that showed it, however often: rows of weight 0.1 nearly always repeat their first outcome, so that repetitions are weak
evidence about where the state leads (the minimal-path estimate of a hierarchical Dirichlet process, and of Kneser and
Ney). Impossible outcomes, steps from a state in which episodes only end, have no part in g.

>>> import numpy as np
>>> from bellief.evaluation.base_measure import Base
>>> base = Base.of(np.array([0, 0]), np.array([1, 2]), np.array([3.0, 1.0]), states=2, actions=1, outcomes=3, weight=1)
>>> base.mean_over(np.eye(3)).T.round(2).tolist()  # state 0 mostly leads to 1; state 1 was never seen
[[0.01, 0.73, 0.25], [0.07, 0.67, 0.27]]
>>> base.draw(np.array([0, 0, 0]), np.array([0.1, 0.7, 0.99])).tolist()
[1, 2, 2]
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Base(NamedTuple):
    """A place is a state and an outcome that was seen from there; places are sorted by both.

    `share` is g; `place_upto` and `share_upto` are running sums, and `before` counts the visits of earlier states.
    """

    place_state: Int[np.ndarray, "L"]
    place_outcome: Int[np.ndarray, "L"]
    place_count: Float[np.ndarray, "L"]
    visits: Float[np.ndarray, "S"]
    share: Float[np.ndarray, "O"]
    weight: float
    actions: int
    place_upto: Float[np.ndarray, "L"]
    share_upto: Float[np.ndarray, "O"]
    before: Float[np.ndarray, "S"]

    @classmethod
    def of(
        cls, state, outcome, count, *, states: int, actions: int, outcomes: int, weight: float, impossible=()
    ) -> "Base":
        """From cells in any order: their states, outcomes and counts; some outcomes may be impossible."""
        place, number = np.unique(state * outcomes + outcome, return_inverse=True)
        place_state, place_outcome = np.divmod(place, outcomes)
        place_count = np.bincount(number, count, len(place))
        share = np.bincount(place_outcome, place_count, outcomes) + 1 / outcomes
        share[np.asarray(impossible, np.int64)] = 0.0
        visits = np.bincount(place_state, place_count, states)
        share /= share.sum()
        return cls(
            place_state, place_outcome, place_count, visits, share, float(weight), actions,
            np.cumsum(place_count), np.cumsum(share), np.cumsum(visits) - visits,
        )  # fmt: skip

    @property
    def outcomes(self) -> int:
        """Number of outcomes."""
        return len(self.share)

    @property
    def elsewhere(self) -> Float[np.ndarray, "S"]:
        """Mass of each state's base that lies where the whole log goes."""
        return self.weight / (self.visits + self.weight)

    def draw(self, state: Int[np.ndarray, "E"], unit: Float[np.ndarray, "E"]) -> Int[np.ndarray, "E"]:
        """The outcome at each point of the unit interval of a state's base."""
        visits = self.visits[state]
        point = unit * (visits + self.weight)
        here = point < visits
        # Only places of the states that are asked for are searched: they are often neighbours.
        ends = (int(state.min()), int(state.max()) + 1) if len(state) else (0, 0)
        first, last = np.searchsorted(self.place_state, ends)
        upto = self.place_upto[first:last]
        local = first + np.searchsorted(upto, self.before[state[here]] + point[here], side="right")
        found = np.empty(len(state), np.int64)
        found[here] = self.place_outcome[np.minimum(local, last - 1)]
        far = np.searchsorted(self.share_upto, (point - visits)[~here] / self.weight, side="right")
        found[~here] = np.minimum(far, self.outcomes - 1)
        return found

    def chance(self, state: Int[np.ndarray, "E"], outcome: Int[np.ndarray, "E"]) -> Float[np.ndarray, "E"]:
        """Mass of an outcome in a state's base."""
        code = self.place_state * self.outcomes + self.place_outcome
        wanted = state * self.outcomes + outcome
        place = np.minimum(np.searchsorted(code, wanted), len(code) - 1)
        here = np.where(code[place] == wanted, self.place_count[place], 0.0)
        return (here + self.weight * self.share[outcome]) / (self.visits[state] + self.weight)

    @property
    def place_mass(self) -> Float[np.ndarray, "L"]:
        """Mass of each place by itself, without the measure that all states share."""
        return self.place_count / (self.visits + self.weight)[self.place_state]

    def table(self) -> Float[np.ndarray, "S O"]:
        """The masses of the places as a table."""
        found = np.zeros((len(self.visits), self.outcomes))
        found[self.place_state, self.place_outcome] = self.place_mass
        return found

    def matrix(self) -> Any:
        """The same as a SciPy matrix."""
        from scipy import sparse

        return sparse.csr_matrix(
            (self.place_mass, (self.place_state, self.place_outcome)), (len(self.visits), self.outcomes)
        )

    def mean_over(self, values: Float[np.ndarray, "*k O"]) -> Float[np.ndarray, "*k S"]:
        """Mean under each state's base of a number that each outcome has."""
        listed = self._added(self.place_mass * values[..., self.place_outcome])
        return listed + (values @ self.share)[..., None] * self.elsewhere

    def mean_by_state(self, table: Float[np.ndarray, "*k S O"]) -> Float[np.ndarray, "*k S"]:
        """The same where an outcome's number depends on the state too."""
        listed = self._added(self.place_mass * table[..., self.place_state, self.place_outcome])
        return listed + table @ self.share * self.elsewhere

    def _added(self, values: Float[np.ndarray, "*k L"]) -> Float[np.ndarray, "*k S"]:
        """Sums over the places of each state."""
        found = np.zeros((*values.shape[:-1], len(self.visits)))
        seen = np.flatnonzero(np.diff(self.place_state, prepend=-1))
        if len(seen):
            found[..., self.place_state[seen]] = np.add.reduceat(values, seen, axis=-1)
        return found
