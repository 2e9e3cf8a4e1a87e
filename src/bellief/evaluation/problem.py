"""A log with the assumptions of its evaluation: data, prior and start, and the belief about rows."""

import dataclasses
import functools
import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bellief.errors import UserError
from bellief.evaluation import noise, reward_levels, rewards, rows
from bellief.evaluation.base_measure import Base
from bellief.evaluation.ends import merged_ends, only_ends, split_outcomes
from bellief.evaluation.logged_prior import even_name, read_prior
from bellief.evaluation.mean_mdp import MeanMDP
from bellief.evaluation.question_checks import check_choice, check_draws, steps_that_count
from bellief.evaluation.support import read_support
from bellief.logs import as_tally
from bellief.logs.labels import find, name_of, shown
from bellief.logs.tally import Tally
from bellief.priors import Prior

# With more states than these, a log that shows less than this part of them has identifiers where indices should be.
MANY_STATES, SMALLEST_SEEN = 2_000, 0.02

# Fourth powers of values of smaller and of larger rewards are none of double precision's numbers.
SMALLEST_REWARDS, LARGEST_REWARDS = 1e-70, 1e65


class Part(NamedTuple):
    """The belief about some rows, their states, and their rewards."""

    held: rows.Rows
    rewards: rewards.Rewards
    state: Int[np.ndarray, "R"]

    @property
    def numbers(self) -> int:
        """Random numbers that a draw of the rows takes, about."""
        return len(self.held.outcome) + 3 * len(self.held.row) + 1


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A log with everything that has to be assumed about it.

    `only_ends` marks states in which episodes end and no action is taken; `support` is a row and an outcome for each
    possibility. `start_count` is how often episodes of the log began in each state, where the first state is uncertain
    too; `reward_range` bounds every mean reward.
    """

    log: Tally
    discount: float
    horizon: int | None
    prior: Prior
    start: Float[np.ndarray, "S"]
    terminates: bool
    only_ends: Bool[np.ndarray, "S"]
    support: tuple[np.ndarray, np.ndarray] | None = None
    start_count: Int[np.ndarray, "S"] | None = None
    reward_range: tuple[float, float] | None = None

    @property
    def is_pooled(self) -> bool:
        """Whether unseen outcomes of a pair are estimated from its state and the log, with an outcome for each end."""
        return self.prior.state_weight is not None

    @functools.cached_property
    def outcome_of_cell(self) -> Int[np.ndarray, "C"]:
        """The outcome of each cell of the log."""
        return split_outcomes(self.log)[0] if self.is_pooled else self.log.cell_outcome

    @functools.cached_property
    def end_states(self) -> Int[np.ndarray, "E"]:
        """The state that each outcome after the states ends in; -1 where the log names none."""
        ends = split_outcomes(self.log)[1] if self.is_pooled else np.full(int(self.terminates), -1)
        return np.array([-1]) if self.terminates and len(ends) == 0 else ends

    @property
    def outcomes(self) -> int:
        """Number of possible outcomes of a pair."""
        return self.log.states + len(self.end_states)

    @functools.cached_property
    def levels(self) -> reward_levels.Levels | None:
        """What outcomes pay, where rewards differ at all."""
        log = self.log
        if not self.is_pooled or log.reward_low == log.reward_high:
            return None
        cells = self.outcome_of_cell, log.cell_count, log.cell_mean, log.cell_squares
        return reward_levels.fit(*cells, log.states, self.outcomes)

    @functools.cached_property
    def base(self) -> Base:
        """Where outcomes lead that a pair has not shown."""
        log = self.log
        assert self.prior.state_weight is not None
        return Base.of(
            log.cell_state, self.outcome_of_cell, np.ones(len(log.cell_count)), states=log.states, actions=log.actions,
            outcomes=self.outcomes, weight=self.prior.state_weight, impossible=np.flatnonzero(self.only_ends),
        )  # fmt: skip

    @functools.cached_property
    def rows(self) -> rows.Rows:
        """The belief about the transitions of all pairs."""
        log, number = self.log, self.log.states * self.log.actions
        row, outcome = log.cell_state * log.actions + log.cell_action, self.outcome_of_cell
        shape, base = log.cell_count.astype(np.float64), None
        weight = np.full(number, self.prior.concentration(self.outcomes) * self.outcomes)
        if self.support is not None:
            row, outcome, shape = self._supported()
            weight = np.zeros(number)
        elif self.prior.state_weight is not None:
            base = self.base
            single = np.bincount(row, log.cell_count == 1, number)
            kept = 1 - self.prior.caution * single / np.maximum(np.bincount(row, log.cell_count, number), 1)
            weight, shape = weight * kept, shape * kept[row]
        first = np.append(0, np.cumsum(np.bincount(row, minlength=number)))
        return rows.Rows(np.arange(number), first, outcome, shape, weight, self.outcomes, base)

    def _supported(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every possible outcome as a cell, with its count and its share of the prior's weight."""
        assert self.support is not None
        log, outcomes = self.log, self.outcomes
        code = (log.cell_state * log.actions + log.cell_action) * outcomes + log.cell_outcome
        possible = np.unique(self.support[0] * outcomes + self.support[1])
        places = np.searchsorted(possible, code).clip(max=len(possible) - 1)
        missing = np.flatnonzero(possible[places] != code)
        if len(missing):
            at = missing[0]
            state = name_of(int(log.cell_state[at]), log.state_labels)
            target = name_of(int(log.cell_outcome[at]), log.state_labels)
            action = name_of(int(log.cell_action[at]), log.action_labels)
            raise UserError(
                f"In the data state {state}, action {action} leads to {target}, which the support leaves out; add it."
            )
        row, outcome = np.divmod(possible, outcomes)
        number = np.bincount(row, minlength=log.states * log.actions)
        each = self.prior.row_weight / number[row] if self.prior.sparse else np.full(len(row), self.prior.dirichlet)
        each[places] += log.cell_count
        return row, outcome, each

    @functools.cached_property
    def rewards(self) -> rewards.Rewards:
        """The belief about the mean rewards of all pairs."""
        log, number = self.log, self.log.states * self.log.actions
        if self.levels is not None:
            return _levelled(self, self.levels)
        pairs = np.zeros((3, number))
        pairs[:, log.pair_state * log.actions + log.pair_action] = log.pair_count, log.pair_mean, log.pair_squares
        cells = np.zeros((3, len(self.rows.outcome)))
        code = (log.cell_state * log.actions + log.cell_action) * self.outcomes + self.outcome_of_cell
        places = np.searchsorted(self.rows.row_of_cell() * self.outcomes + self.rows.outcome, code)
        cells[:, places] = log.cell_count, log.cell_mean, log.cell_squares
        moments = rewards.Moments(*pairs), rewards.Moments(*cells)
        return rewards.posterior(self.prior, *moments, self.rows.first)

    @property
    def shared_reward(self) -> float:
        """What may be taken out of all rewards and added again in closed form: the mean expected reward of pairs, or
        nothing where episodes end.
        """
        if self.terminates:
            return 0.0
        return self.prior.reward_mean if self.levels is None else float(self.levels.level.mean())

    def start_values(self, values: Float[np.ndarray, "N *k S"], seed: int) -> Float[np.ndarray, "N *k"]:
        """Values averaged over first states, in each draw over first states of its own where these are uncertain."""
        if self.start_count is None:
            return values @ self.start
        seen = np.flatnonzero(self.start_count)
        share = noise.gamma(self.start_count[seen], noise.keys(seed, noise.START, seen), np.arange(len(values)))
        share /= share.sum(-1, keepdims=True)
        return np.einsum("n...s,ns->n...", values[..., seen], share)

    @functools.cached_property
    def whole_rows(self) -> bool:
        """Whether every possible outcome is drawn on its own: the prior would need more atoms than that."""
        weight = float(self.prior.concentration(self.outcomes) * self.outcomes)
        return (
            self.support is None
            and not self.is_pooled
            and rows.atoms_needed(np.array([weight]), np.zeros(1))[0] >= self.outcomes
        )

    def part(self, used: Bool[np.ndarray, "..."]) -> Part:
        """The belief about the rows of some pairs, in the form in which they are drawn."""
        position = np.flatnonzero(used)
        held, cells = rows.restrict(self.rows, position)
        paid = rewards.restrict(self.rewards, position, cells)
        if self.whole_rows:
            held, seen = rows.expand(held)
            paid = rewards.expand(paid, seen, len(held.outcome))
        return Part(held, paid, held.row // self.log.actions)

    @functools.cached_property
    def mean_mdp(self) -> MeanMDP:
        """The MDP in which everything is at its posterior mean."""
        return MeanMDP.of(self.rows, self.rewards, self.log.states)

    def has_variance(self, used: Bool[np.ndarray, "S A"]) -> Bool[np.ndarray, "S"]:
        """Whether the mean reward of every used pair of a state has a posterior variance: a Student t distribution has
        one with more than two degrees of freedom.
        """
        return np.logical_or(~used, (self.rewards.shape > 1).reshape(used.shape)).all(-1)


def _levelled(problem: "Problem", levels: reward_levels.Levels) -> rewards.Rewards:
    """The belief about rewards less their outcomes' levels, in units of their scales."""
    log, first = problem.log, problem.rows.first
    level, scale = (field[problem.outcome_of_cell] for field in (levels.level, levels.scale))
    varies = scale > 0
    unit = np.where(varies, scale, 1.0)
    cells = rewards.Moments(
        np.where(varies, log.cell_count, 0.0),
        np.where(varies, (log.cell_mean - level) / unit, 0.0),
        np.where(varies, log.cell_squares / unit**2, 0.0),
    )
    total = rows.sums(cells.number, first)
    pairs = rewards.Moments(total, np.zeros(len(total)), np.zeros(len(total)))
    return rewards.posterior(problem.prior, pairs, cells, first)._replace(level=levels.level, scale=levels.scale)


def prepare(
    data: Any,
    discount: float,
    *,
    prior: str | Prior = "logged",
    reward_scale: float | str | None = None,
    horizon: int | None = None,
    start: Any = None,
    terminates: bool | None = None,
    belief: str | None = None,
    support: Any = None,
    reward_range: tuple[float, float] | None = None,
    draws: int = 1,
) -> Problem:
    """Check the arguments; sizes are checked before anything large is allocated."""
    _note_belief(belief)
    given = data if isinstance(data, Tally) else as_tally(data)
    largest = max(abs(given.reward_low), abs(given.reward_high))
    if 0 < largest < SMALLEST_REWARDS or largest > LARGEST_REWARDS:
        factor = 10.0 ** min(abs(math.floor(math.log10(largest))), 300)
        what, how, back = ("small", "multiply", "divide") if largest < 1 else ("large", "divide", "multiply")
        raise UserError(
            f"The largest reward has size {largest:.3g}, whose fourth power is too {what} a number: {how} all rewards, "
            f"for example by {factor:g}, and {back} the values by the same."
        )
    chosen = scaled_prior(_fitting(prior, support), reward_scale, given)
    log = merged_ends(given) if chosen.state_weight is None else given
    if log.ends and terminates is False:
        raise UserError("Episodes end in the data, so terminates cannot be False.")
    if discount == 1 and horizon is None and not (log.ends or terminates):
        raise UserError(
            "With discount 1 and no end in sight the value is infinite: give a horizon, a discount below 1, or data in "
            "which episodes end (a column 'terminated')."
        )
    _check_numbering(log)
    check_draws(log.states, log.actions, len(log.cell_count), draws)
    ends, over, first = bool(log.ends) if terminates is None else terminates, only_ends(given), read_start(start, log)
    wrong = np.flatnonzero((first > 0) & over)
    if len(wrong):
        name = name_of(int(wrong[0]), log.state_labels)
        raise UserError(f"In the data episodes only ever end in state {name}: let them start elsewhere.")
    is_start_uncertain = start is None and chosen.state_weight is not None and (log.start_count > 0).sum() > 1
    return Problem(
        log,
        float(discount),
        None if horizon is None else steps_that_count(discount, horizon),
        chosen,
        first,
        ends,
        over,
        None if support is None else read_support(support, log, ends),
        log.start_count if is_start_uncertain else None,
        read_range(reward_range, log),
    )


def _fitting(prior: str | Prior, support: Any) -> str | Prior:
    """Where possible outcomes are given, the prior is even over them: nothing about them is learned."""
    if support is None:
        return prior
    if isinstance(prior, Prior) and prior.state_weight is not None:
        raise UserError("A prior with a state_weight learns which outcomes are possible: leave out the support.")
    return even_name(prior)


def read_range(given: Any, log: Tally) -> tuple[float, float] | None:
    """The smallest and the largest reward that are possible."""
    if given is None:
        return None
    low, high = (float(number) for number in given)
    if not low <= high or not np.isfinite([low, high]).all():
        raise UserError(f"The reward range must be two numbers, the smaller first, not {low:g} and {high:g}.")
    for seen in (log.reward_low, log.reward_high):
        if not low <= seen <= high:
            raise UserError(f"The data hold the reward {seen:g}, outside the range from {low:g} to {high:g}: widen it.")
    return low, high


def _note_belief(belief: str | None) -> None:
    if belief is not None:
        check_choice("belief", belief, ("auto", "dense", "sparse"))
        warnings.warn(
            "The option belief has no effect any more, because one belief serves logs of any size: leave it out; the "
            "next version will refuse it.",
            FutureWarning,
            stacklevel=4,
        )


def scaled_prior(prior: str | Prior, reward_scale: float | str | None, log: Tally) -> Prior:
    """The prior for rewards measured in units of `reward_scale`, written for rewards as they are.

    The NormalGamma prior expects rewards of size one or so. Dividing all rewards by a scale and multiplying the values
    by it afterwards is the same as giving the prior the scaled mean and rate. `data` takes the root mean square of the
    logged rewards.
    """
    if reward_scale is None:
        return read_prior(prior, log)
    if isinstance(prior, str) and prior.startswith("logged"):
        raise UserError(
            f"The prior '{prior}' takes its scale from the log: leave out reward_scale, or name another prior."
        )
    prior = read_prior(prior, log)
    scale = log.typical_reward() if reward_scale == "data" else reward_scale
    if not isinstance(scale, int | float | np.number) or not 0 < scale < np.inf:
        raise UserError(f"reward_scale must be 'data' or a positive number, not {shown(reward_scale)}.")
    return prior.scaled(float(scale))


def read_start(start: Any, log: Tally) -> Float[np.ndarray, "S"]:
    """A distribution over first states from one state, from probabilities, or from the log."""
    if start is None:
        return log.start_distribution()
    if isinstance(start, str | int | np.integer):
        first = np.zeros(log.states)
        first[find("state", start, log.states, log.state_labels, "start")] = 1.0
        return first
    start = np.asarray(start, dtype=np.float64)
    if start.shape != (log.states,) or (start < 0).any() or not np.isclose(start.sum(), 1):
        raise UserError(f"The start distribution must be {log.states} non-negative numbers with sum 1.")
    return start


def _check_numbering(log: Tally) -> None:
    """Identifiers used as numbers of states leave huge gaps."""
    seen = len(np.union1d(log.cell_state, log.cell_outcome[log.cell_outcome < log.states]))
    if log.states > MANY_STATES and seen < SMALLEST_SEEN * log.states:
        raise UserError(
            f"The data show {seen} of {log.states} states: number states 0, 1, 2, ... without gaps, or take them as "
            "labels (labels=True, --labels)."
        )
