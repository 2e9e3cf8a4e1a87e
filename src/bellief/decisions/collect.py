"""`bellief.collect_next`: where further data would reduce the variance of a policy's value the most."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from bellief.decisions import slopes
from bellief.errors import UserError
from bellief.evaluation.policy_forms import read_policy
from bellief.evaluation.problem import Problem, prepare
from bellief.evaluation.question_checks import check_numbers
from bellief.evaluation.rows import sums
from bellief.evaluation.sampled import SampledMDPs
from bellief.logs.labels import Labels, name_of

if TYPE_CHECKING:
    import pandas as pd
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
        """Pairs that the policy uses, the largest reduction first."""
        order = np.lexsort((-self.time.ravel(), -self.reduction.ravel()))
        states_actions = np.stack(np.unravel_index(order, self.reduction.shape), axis=-1)
        return [(int(state), int(action)) for state, action in states_actions if self.time[state, action] > 0]

    def to_pandas(self, top: int | None = None) -> "pd.DataFrame":
        """One row per pair, the largest reduction first."""
        import pandas as pd

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
    data: Any,
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
    belief: str | None = None,
    support: Any = None,
    reward_range: tuple[float, float] | None = None,
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
        support=support, reward_range=reward_range, draws=3 * draws,
    )  # fmt: skip
    log = problem.log
    table = read_policy(policy, log)
    values, time = SampledMDPs(problem, seed, draws).values_and_visits(table)
    found = slopes.moments(problem, values[:, None], time[:, None])
    time, seen = time.mean(0)[:, None] * table, log.visits()
    time[problem.only_ends] = 0.0
    rows = table**2 * removed(problem, visits) * slopes.row_covariances(problem, found)[0, 0]
    with np.errstate(invalid="ignore"):
        rewards = (slopes.reward_variances(problem) - slopes.reward_variances(problem, visits)).reshape(seen.shape)
        if problem.reward_range is not None:
            # A mean between two limits varies by at most a quarter of their distance squared.
            low, high = problem.reward_range
            rewards = np.minimum(rewards, (high - low) ** 2 / 4)
        reduction = rows + np.where(time > 0, time**2 * rewards, 0.0)
    reduction[np.isnan(reduction)] = np.inf  # the difference of two infinite variances
    start = problem.start_values(values, seed)
    variance = float(start.var(ddof=1)) if np.isfinite(reduction).all() and draws > 1 else None
    if variance is not None:
        # For pairs that were hardly seen the first-order term exceeds the whole variance.
        reduction = np.minimum(reduction, variance)
    return CollectionPlan(reduction, time, seen, variance, visits, len(log), log.state_labels, log.action_labels)


def removed(problem: Problem, visits: float | Float[np.ndarray, "S A"]) -> Float[np.ndarray, "S A"]:
    """Part of the variance of each pair's row that so many more visits are expected to remove."""
    weight = (sums(problem.rows.shape, problem.rows.first) + problem.rows.rest).reshape(problem.log.visits().shape)
    return visits / (weight + visits)
