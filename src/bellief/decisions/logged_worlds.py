"""Problems drawn from the model that the prior `logged` is the belief of, and that belief with nothing estimated.

The model, for S states and O outcomes (going on in one of S states, or one of `ENDS` ends):

1. Where outcomes lead in general: g ~ Dirichlet(1, ..., 1) over the outcomes.
2. Where a state leads under any action: m_s ~ Dirichlet(v g), v being the prior's `state_weight`.
3. Rows of pairs: P_sa ~ Dirichlet(w m_s), w being its `row_weight`.
4. What outcomes pay: l_o ~ Normal(0, 1), and the scale of what pairs add to it, 1.
5. Rewards less l_o, in units of the scale: NormalGamma by pair and outcome, as the prior's reward part says.

With g, m, l and the scale known, rows and rewards are conjugate, and the belief of `evaluate` (`evaluation.problem`) is
the posterior; the prior's `caution`, which makes intervals wider than Bayes' rule, is then 0. `evaluate`
replaces all of them by estimates from the log.

>>> import numpy as np
>>> from bellief.decisions.logged_worlds import UNIT, draw
>>> world, known = draw(np.random.default_rng(0), UNIT, states=3, actions=2, terminates=True)
>>> world.rows.shape, known.base.shape  # three states and two ends
((3, 2, 5), (3, 5))
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.decisions.worlds import World, dirichlet
from bellief.evaluation import reward_levels
from bellief.evaluation.base_measure import Base
from bellief.evaluation.logged_prior import REWARD_SHAPE, ROW_WEIGHT, STATE_WEIGHT
from bellief.evaluation.problem import Problem, prepare
from bellief.logs.transitions import Transitions
from bellief.priors import Prior

# The default prior in units of its own: noise 1, pairs that differ by 1, outcomes of a pair by 0.7.
UNIT = Prior(
    sparse=True, row_weight=ROW_WEIGHT, outcome_strength=2.0, reward_shape=REWARD_SHAPE, state_weight=STATE_WEIGHT
)

# Ends of episodes that are separate outcomes.
ENDS = 2


class Known(NamedTuple):
    """Parameters that `evaluate` estimates: where each state leads, and what outcomes pay."""

    base: Float[np.ndarray, "S O"]
    level: Float[np.ndarray, "O"]


def draw(rng: np.random.Generator, prior: Prior, states: int, actions: int, terminates: bool) -> tuple[World, Known]:
    """A problem and the parameters that it was drawn with."""
    outcomes = states + ENDS * terminates
    assert prior.state_weight is not None
    assert prior.outcome_strength is not None
    shared = rng.dirichlet(np.ones(outcomes))
    base = dirichlet(rng, prior.state_weight * np.tile(shared, (states, 1)))
    rows = dirichlet(rng, prior.row_weight * np.repeat(base[:, None], actions, axis=1))
    level = rng.normal(size=outcomes)
    precision = rng.gamma(prior.reward_shape, 1 / prior.reward_rate, size=(states, actions))
    pair = rng.normal(prior.reward_mean, 1 / np.sqrt(prior.reward_strength * precision))
    spread = 1 / np.sqrt(prior.outcome_strength * precision)
    by_outcome = level + rng.normal(pair[..., None], spread[..., None], size=rows.shape)
    return World(rows, (rows * by_outcome).sum(-1), 1 / np.sqrt(precision), by_outcome), Known(base, level)


@dataclasses.dataclass(frozen=True, eq=False)
class KnownProblem(Problem):
    """A log whose base measure and levels are given. Its states are those of the problem and then the ends."""

    known: Known | None = None

    @property
    def _acting(self) -> int:
        assert self.known is not None
        return len(self.known.base)

    @functools.cached_property
    def end_states(self) -> Int[np.ndarray, "E"]:
        """All ends, also those that the log does not show."""
        return np.arange(self._acting, self.log.states)

    @functools.cached_property
    def outcome_of_cell(self) -> Int[np.ndarray, "C"]:
        """The outcome of each cell of the log."""
        log = self.log
        return np.where(log.cell_terminated, log.states + log.cell_next - self._acting, log.cell_next)

    @functools.cached_property
    def base(self) -> Base:
        """The base that the problem was drawn with."""
        assert self.known is not None
        state, outcome = np.indices(self.known.base.shape).reshape(2, -1)
        # Ends come after all states, those that are only ends included.
        outcome = np.where(outcome < self._acting, outcome, outcome + len(self.end_states))
        return Base.of(
            state, outcome, self.known.base.ravel(), states=self.log.states, actions=self.log.actions,
            outcomes=self.outcomes, weight=1e-12,
        )  # fmt: skip

    @functools.cached_property
    def levels(self) -> reward_levels.Levels:
        """What outcomes pay."""
        assert self.known is not None
        level = np.zeros(self.outcomes)
        level[np.r_[: self._acting, self.log.states : self.outcomes]] = self.known.level
        return reward_levels.Levels(level, np.ones(self.outcomes), np.ones(self.outcomes))


def known_problem(data: Transitions, discount: float, prior: Prior, known: Known, terminates: bool) -> KnownProblem:
    """The belief about a problem that was drawn with known parameters; episodes begin in state 0."""
    ready = prepare(data, discount, prior=prior, start=0, terminates=terminates)
    fields: dict[str, Any] = {field.name: getattr(ready, field.name) for field in dataclasses.fields(ready)}
    return KnownProblem(**fields, known=known)
