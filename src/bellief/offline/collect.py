"""`bellief.collect_next`: where further data would tell the most about a policy's value."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bellief.beliefs import sparse
from bellief.errors import UserError
from bellief.logs.labels import Labels, name_of
from bellief.logs.tally import LogStatistics
from bellief.logs.transitions import Transitions
from bellief.offline.checks import check_numbers
from bellief.offline.models import Explored, sampled
from bellief.offline.outcomes import only_ends
from bellief.offline.policies import read_policy
from bellief.offline.problem import Problem, prepare
from bellief.offline.worlds import counts_of, outcome_rewards

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclasses.dataclass(frozen=True, eq=False)
class CollectionPlan:
    """By how much the variance of a policy's start value is expected to fall with `visits` more visits of each pair.

    `reduction[s, a]` is infinite where the reward of a pair was never observed and its prior has no variance; such
    pairs come first, by the time the policy spends with them. `variance` is that of the start value now (None where
    it does not exist), and `time` the discounted visits of each pair.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 22, [0] * 20 + [1] * 2, [1.0, 2.0] * 11, [0] * 22)
    >>> plan = bellief.collect_next(data, discount=0.5, draws=100)
    >>> isinstance(plan, bellief.CollectionPlan), plan.seen.tolist(), bool(plan.reduction.argmax() == 1)
    (True, [[20, 2]], True)
    """

    reduction: Float[np.ndarray, "S A"]
    time: Float[np.ndarray, "S A"]
    seen: Int[np.ndarray, "S A"]
    variance: float | None
    visits: int
    transitions: int
    state_labels: Labels = None
    action_labels: Labels = None

    def ranking(self) -> list[tuple[int, int]]:
        """Pairs that the policy uses, the most telling first."""
        order = np.lexsort((-self.time.ravel(), -self.reduction.ravel()))
        states_actions = np.stack(np.unravel_index(order, self.reduction.shape), axis=-1)
        return [(int(state), int(action)) for state, action in states_actions if self.time[state, action] > 0]

    def to_pandas(self, top: int | None = None) -> pd.DataFrame:
        """One row per pair, the most telling first."""
        return pd.DataFrame(self.to_dict(top)["pairs"])

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """The ranking as plain numbers; an infinite reduction is null."""
        pairs = []
        for state, action in self.ranking()[:top]:
            reduction = float(self.reduction[state, action])
            finite = np.isfinite(reduction)
            pairs.append(
                {
                    "state": state if self.state_labels is None else self.state_labels[state],
                    "action": action if self.action_labels is None else self.action_labels[action],
                    "seen": int(self.seen[state, action]),
                    "discounted_visits": float(self.time[state, action]),
                    "variance_reduction": reduction if finite else None,
                    "share": reduction / self.variance if finite and self.variance else None,
                }
            )
        return {
            "transitions": self.transitions,
            "visits": self.visits,
            "variance": self.variance,
            "sd": None if self.variance is None else float(np.sqrt(self.variance)),
            "pairs": pairs,
        }

    def plot(self, top: int = 10, ax: "Axes | None" = None) -> "Axes":
        """The most telling pairs as bars."""
        from bellief.plots.decisions import plot_collection

        return plot_collection(self, top, ax)

    def __repr__(self) -> str:
        first = self.ranking()[0]
        names = name_of(first[0], self.state_labels), name_of(first[1], self.action_labels)
        return f"CollectionPlan(next: state {names[0]}, action {names[1]})"

    def _repr_html_(self) -> str:
        from bellief.plots.cards import table_card

        rows = [
            [pair["state"], pair["action"], pair["seen"], "all" if pair["share"] is None else f"{pair['share']:.2%}"]
            for pair in self.to_dict(12)["pairs"]
        ]
        said = f"expected fall of the value's variance with {self.visits} more visits"
        return table_card("What to collect next", said, ["state", "action", "seen", "variance removed"], rows, ())


def collect_next(
    data: Transitions | LogStatistics,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    visits: int = 1,
    prior: Any = "logged",
    reward_scale: float | str | None = None,
    start: Any = None,
    terminates: bool | None = None,
    seed: int = 0,
    draws: int = 400,
    belief: str = "auto",
    support: Any = None,
) -> CollectionPlan:
    """Rank state-action pairs by how much `visits` more visits would reduce the variance of the policy's start value.

    Observing a pair moves the posterior mean of its row and of its reward; the variance of the value falls by the
    variance of that movement. For Dirichlet rows and NormalGamma rewards it is visits / (n0 + n + visits) of the
    present variance, and the value answers to it, to first order, with its gradient averaged over posterior draws:
    discounted visits of the pair, times the values of the next states and, where rewards go with the outcome, what
    these pay. Higher orders are left out; on small problems the result is checked against brute force.

    `visits` is how many further visits of a pair are weighed; the other options are those of `evaluate`.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 22, [0] * 20 + [1] * 2, [1.0, 2.0] * 11, [0] * 22)
    >>> plan = bellief.collect_next(data, discount=0.5, draws=100)
    >>> plan.ranking()[0]  # state and action: the one that was tried less
    (0, 1)
    """
    check_numbers(discount, 0.9, seed, draws=draws)
    if visits < 1:
        raise UserError(f"visits must be at least 1, not {visits}.")
    problem = prepare(
        data, discount, prior=prior, reward_scale=reward_scale, start=start, terminates=terminates, belief=belief,
        support=support, draws=3 * draws,
    )  # fmt: skip
    log = problem.log
    table = read_policy(policy, log)
    explored = sampled(problem, seed, draws).explore(table)
    time = explored.visits.mean(0)[:, None] * table
    time[only_ends(data.statistics())] = 0.0
    seen = log.visits()
    by_outcome = problem.prior.outcome_strength is not None
    rows, rewards = (_reductions_by_outcome if by_outcome else _reductions)(problem, explored, visits, seen)
    with np.errstate(invalid="ignore"):
        reduction = table**2 * rows + np.where(time > 0, time**2 * rewards, 0.0)
    values = explored.values @ problem.start
    variance = float(values.var(ddof=1)) if np.isfinite(reduction).all() and draws > 1 else None
    return CollectionPlan(reduction, time, seen, variance, visits, len(log), log.state_labels, log.action_labels)


def _reductions(problem: Problem, explored: Explored, visits: int, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What more visits of each pair take from the value's variance, by its row and by its reward.

    For a policy that surely takes the pair; the second for one discounted visit of it.
    """
    reward, weight = _reward_variances(problem)
    rows = visits / (weight + seen + visits) * _row_variances(problem, explored.values, explored.visits)
    return rows, visits / (problem.prior.reward_strength + seen + visits) * reward


def _reductions_by_outcome(problem: Problem, explored: Explored, visits: int, seen: np.ndarray):
    """The same where rewards go with the outcome: a likelier outcome brings its reward and the value that follows.

    Given the noise rewards are Gaussian, so what is left of a variance depends on counts only; those after more visits
    are taken at their expectation.
    """
    states, counts = problem.log.states, counts_of(problem)
    belief = outcome_rewards(problem.prior, counts)
    following = np.zeros((states, counts.outcomes.shape[-1]))
    following[:, :states] = problem.discount * explored.visits.T @ explored.values / len(explored.values)
    slope = following[:, None] + explored.visits.mean(0)[:, None, None] * belief.means()
    concentration = problem.prior.concentration(counts.outcomes.shape[-1]) + counts.outcomes
    total = concentration.sum(-1)
    row = concentration / total[..., None]
    spread = (row * (slope - (row * slope).sum(-1, keepdims=True)) ** 2).sum(-1) / (total + 1)
    later = outcome_rewards(problem.prior, counts._replace(outcomes=counts.outcomes + visits * row))
    noise = np.full(seen.shape, np.inf)
    np.divide(belief.rate, belief.shape - 1, out=noise, where=belief.shape > 1)
    return visits / (total + visits) * spread, noise * (belief.width(row) - later.width(row))


def _row_variances(problem: Problem, values: Float[np.ndarray, "N S"], visits: Float[np.ndarray, "N S"]):
    """Variance of the start value due to each pair's row, for a policy that surely takes the pair.

    The slope of the start value in the probability of an outcome is discount * visits of the state * value of the
    outcome, averaged over draws; the end is worth zero.
    """
    belief = problem.sparse_belief()
    states, actions, rows = problem.log.states, problem.log.actions, len(belief.unseen)
    row = np.repeat(np.arange(rows), np.diff(belief.first))
    going_on = np.flatnonzero(belief.outcome < states)
    state, outcome = row[going_on] // actions, belief.outcome[going_on]
    slope, unseen_sum = np.zeros(len(row)), np.zeros(states)
    for value, visit in zip(values, visits, strict=True):
        slope[going_on] += visit[state] * value[outcome]
        unseen_sum += visit * value.sum()
    slope *= problem.discount / len(values)
    unseen_sum *= problem.discount / len(values)
    # Over the unseen outcomes: what is left of the sums over all outcomes. Their mean square needs every slope, which
    # only a dense table can afford; a sparse belief spreads evenly over them anyway.
    unseen = np.maximum(belief.unseen, 1)
    mean_unseen = (np.repeat(unseen_sum, actions) - np.bincount(row, slope, rows)) / unseen
    square_unseen = mean_unseen**2
    if problem.dense:
        squares = ((problem.discount * visits.T @ values / len(values)) ** 2).sum(-1)
        square_unseen = (np.repeat(squares, actions) - np.bincount(row, slope**2, rows)) / unseen
    cells, elsewhere = sparse.concentrations(problem.prior, belief)
    total = np.bincount(row, cells, rows) + elsewhere
    chance, rest = cells / total[row], elsewhere / total
    mean = np.bincount(row, chance * slope, rows) + rest * mean_unseen
    square = np.bincount(row, chance * slope**2, rows) + rest * square_unseen
    return (np.maximum(square - mean**2, 0) / (total + 1)).reshape(states, actions)


def _reward_variances(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Posterior variance of each pair's mean reward (infinite up to two degrees of freedom), and its row's weight."""
    belief, prior, shape = problem.sparse_belief(), problem.prior, (problem.log.states, problem.log.actions)
    _, strength, freedom, rate = sparse.reward_parameters(prior, *belief.rewards)
    variance = np.full(len(rate), np.inf)
    np.divide(rate, strength * (freedom - 1), out=variance, where=freedom > 1)
    outcomes = np.diff(belief.first) + belief.unseen
    weight = np.full(len(rate), prior.row_weight) if prior.sparse else prior.dirichlet * outcomes
    return variance.reshape(shape), weight.reshape(shape)
