"""`bellief.improve`: the policy that the posterior recommends, by its mean, a low quantile or CVaR."""

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from bellief.decisions.policy_comparison import PolicyComparison, comparison_of
from bellief.errors import UserError
from bellief.evaluation.diagnostics import FEW_VISITS
from bellief.evaluation.policy_value import posterior_of
from bellief.evaluation.posterior import ValuePosterior
from bellief.evaluation.problem import prepare
from bellief.evaluation.question import Question
from bellief.evaluation.question_checks import check_choice, check_numbers
from bellief.evaluation.sampled import Explored, SampledMDPs
from bellief.logs.labels import Labels, name_of
from bellief.policies import save_policy

if TYPE_CHECKING:
    import pandas as pd

OBJECTIVES = ("mean", "quantile", "cvar")
MODES = ("safe", "free")
MOST_ROUNDS = 100

# MDPs in which the policy is chosen; a tenth of them with more than so many states.
MDPS, MANY_STATES = 200, 2_000

# The policy is chosen in one set of sampled MDPs and judged in another: chosen and judged in the same, it would look
# better than it is.
JUDGING_STREAM = 0x5EED


@dataclasses.dataclass(frozen=True, eq=False)
class Improvement:
    """A recommended policy, its posterior, and its comparison with what the log did.

    `policy[s]` is the action that is recommended, `probabilities` the policy as a table: in the mode `safe` rarely
    tried actions keep the probability that the log gave them. `objective_value` is what was maximised, in the MDPs that
    it was chosen in, and `judged_value` the same in fresh ones. `comparison` has the policies `improved` and
    `behaviour`.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0, 1] * 20, [1.0, 2.0] * 20, [0] * 40)
    >>> better = bellief.improve(data, discount=0.5, objective="cvar", draws=100, mdps=20)
    >>> isinstance(better, bellief.Improvement), better.probabilities.tolist(), better.prob_better > 0.9
    (True, [[0.0, 1.0]], True)
    """

    policy: Int[np.ndarray, "S"]
    posterior: ValuePosterior
    comparison: PolicyComparison
    objective: str
    tail: float
    objective_value: float
    judged_value: float
    rounds: int
    visits: Int[np.ndarray, "S A"]
    probabilities: Float[np.ndarray, "S A"]
    mode: str = "safe"
    state_labels: Labels = None
    action_labels: Labels = None

    @property
    def listed(self) -> Int[np.ndarray, "s"]:
        """States with actions: all except those in which episodes only end."""
        return self.posterior.listed

    @property
    def prob_better(self) -> float:
        """Posterior probability that the policy is worth more than what the log did."""
        return float(self.comparison.prob_better[0, 1])

    def save_policy(self, path: str | os.PathLike) -> None:
        """Write the policy as a CSV file that `evaluate` reads, without states in which episodes only end."""
        listed = np.isin(np.arange(len(self.policy)), self.listed)[:, None]
        save_policy(Path(path), np.where(listed, self.probabilities, 0.0), self.state_labels, self.action_labels)

    def to_pandas(self) -> "pd.DataFrame":
        """One row per state, except those in which episodes only end: the action, how often the log took it, and how
        often the log was in that state.
        """
        listed, visits, policy = self.listed, self.visits[self.listed], self.policy[self.listed]
        import pandas as pd

        return pd.DataFrame(
            {
                "state": [name_of(state, self.state_labels) for state in listed],
                "action": [name_of(int(action), self.action_labels) for action in policy],
                "usual_action": pd.array(
                    [
                        name_of(int(action), self.action_labels) if seen.sum() else None
                        for action, seen in zip(visits.argmax(-1), visits, strict=True)
                    ],
                    dtype=object,
                ),
                "visits_of_action": np.take_along_axis(visits, policy[:, None], 1)[:, 0],
                "visits_of_state": visits.sum(-1),
                "value": self.posterior.mean[listed],
            }
        ).set_index("state")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the draws."""
        frame = self.to_pandas().reset_index()
        return {
            "objective": self.objective,
            "mode": self.mode,
            "tail": None if self.objective == "mean" else self.tail,
            "objective_value": self.objective_value,
            "judged_value": self.judged_value,
            "rounds": self.rounds,
            "prob_better_than_behaviour": self.prob_better,
            "policy": [
                {
                    **row,
                    # pandas has NaN for states without actions in the log.
                    "usual_action": row["usual_action"] if isinstance(row["usual_action"], str) else None,
                    "visits_of_action": int(row["visits_of_action"]),
                    "visits_of_state": int(row["visits_of_state"]),
                }
                for row in frame.to_dict("records")
            ],
            "posterior": self.posterior.to_dict(),
            "comparison": self.comparison.to_dict(),
        }

    def __repr__(self) -> str:
        return f"Improvement({self.objective}, better than the log's policy with probability {self.prob_better:.1%})"

    def _repr_html_(self) -> str:
        from bellief.plots.cards import table_card

        frame = self.to_pandas().reset_index()
        rows = [list(row) for row in frame[["state", "action", "visits_of_action", "value"]].itertuples(index=False)]
        said = f"better than what the log did with probability {self.prob_better:.1%}"
        return table_card("Recommended policy", said, ["state", "action", "tried", "value"], rows, ())


def improve(
    data: Any,
    discount: float = 0.99,
    *,
    objective: str = "mean",
    tail: float = 0.1,
    mode: str = "safe",
    min_visits: int | None = None,
    prior: Any = "logged",
    reward_scale: float | str | None = None,
    start: Any = None,
    terminates: bool | None = None,
    level: float = 0.9,
    seed: int = 0,
    mdps: int | None = None,
    draws: int = 1000,
    belief: str | None = None,
    support: Any = None,
    reward_range: tuple[float, float] | None = None,
) -> Improvement:
    """A stationary policy that maximises the posterior mean of the start value, a low quantile of it, or its CVaR.

    Options that are not those of `evaluate`:

    - `objective`: `mean`; `quantile`, the value that is exceeded with probability 1 - tail; or `cvar`, the mean of the
      worst `tail` of the posterior.
    - `tail`: for the two cautious objectives.
    - `mode`: `safe` leaves what the log did only where the data support it: actions tried fewer than `min_visits` times
      in a state keep the probability that the log gave them, and the rest goes to the best of the others (safe policy
      improvement with baseline bootstrapping, Laroche, Trichelair and Tachet des Combes 2019). `free` chooses one
      action in every state.
    - `min_visits`: how often an action must have been tried in a state to be recommended there; 5 if safe, 1 if free
      (where none was tried that often, the log's policy stays, or all actions are allowed).
    - `mdps`: sampled MDPs in which the policy is chosen; by default 200, and 20 above 2,000 states.

    The search starts from the best policy of the mean MDP and follows the gradient of the objective over policies:
    in each state the action with the largest sum over MDPs of weight, discounted visits and action value. A step that
    does not raise the objective is halved, so every round improves it; the result is a local optimum, as the problem
    of one policy for many MDPs has no efficient exact solution.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0, 1] * 20, [1.0, 2.0] * 20, [0] * 40)
    >>> bellief.improve(data, discount=0.5, draws=100, mdps=20).policy.tolist()
    [1]
    """
    check_numbers(discount, level, seed, draws=draws, mdps=mdps)
    check_choice("objective", objective, OBJECTIVES)
    if not 0 < tail < 1:
        raise UserError(f"tail must lie between 0 and 1, not {tail}.")
    check_choice("mode", mode, MODES)
    min_visits = {"safe": FEW_VISITS, "free": 1}[mode] if min_visits is None else min_visits
    if min_visits < 0:
        raise UserError(f"min_visits must be at least 0, not {min_visits}.")
    problem = prepare(
        data, discount, prior=prior, reward_scale=reward_scale, start=start, terminates=terminates, belief=belief,
        support=support, reward_range=reward_range, draws=draws,
    )  # fmt: skip
    log = problem.log
    count = mdps or (MDPS if log.states <= MANY_STATES else MDPS // 10)
    visits = log.visits()
    allowed, behaviour = visits >= min_visits, log.behaviour()
    kept = np.where(allowed, 0.0, behaviour) if mode == "safe" else np.zeros(visits.shape)
    usual = np.eye(log.actions, dtype=bool)[behaviour.argmax(-1)] if mode == "safe" else np.ones(visits.shape, bool)
    allowed |= ~allowed.any(-1, keepdims=True) & usual
    models = SampledMDPs(problem, seed, count)
    policy, value, rounds = _ascend(models, problem.start, allowed, kept, objective, tail)
    tables = np.stack([_table(policy, kept), behaviour])
    judging = (seed + JUDGING_STREAM) % 2**32
    values = SampledMDPs(problem, judging, draws).values(tables)
    posterior = posterior_of(Question(problem, tables[0]), values[:, 0], "joint", level, {"mdps": draws}, judging)
    starts = problem.start_values(values, judging)
    comparison = comparison_of(problem, ("improved", "behaviour"), tables, starts, 0.95, level, judging)
    return Improvement(
        policy, posterior, comparison, objective, tail, value, measure(comparison.samples[:, 0], objective, tail),
        rounds, visits, tables[0], mode, log.state_labels, log.action_labels,
    )  # fmt: skip


def measure(values: Float[np.ndarray, "N"], objective: str, tail: float) -> float:
    """The objective of some draws of the start value."""
    if objective == "mean":
        return float(values.mean())
    return float(weights(values, objective, tail) @ values) if objective == "cvar" else float(np.quantile(values, tail))


def weights(values: Float[np.ndarray, "N"], objective: str, tail: float) -> Float[np.ndarray, "N"]:
    """How much each draw counts in the objective's gradient; the sum is one.

    The CVaR's weights lie on the worst draws; a quantile's on those around it, as its gradient is the mean gradient
    of the draws at the quantile.
    """
    count = len(values)
    if objective == "mean":
        return np.full(count, 1 / count)
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    if objective == "cvar":
        return np.clip(tail * count - rank, 0, 1) / (tail * count)
    width = max(2.0, count**0.5)
    near = np.exp(-0.5 * ((rank + 0.5 - tail * count) / width) ** 2)
    return near / near.sum()


def _table(policy: Int[np.ndarray, "S"], kept: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "S A"]:
    """Probabilities that are kept, and the rest on the chosen action of each state."""
    return kept + np.eye(kept.shape[1])[policy] * (1 - kept.sum(-1, keepdims=True))


def _ascend(models: SampledMDPs, start, allowed: Bool[np.ndarray, "S A"], kept, objective: str, tail: float):
    def explore(policy) -> tuple[Explored, float]:
        explored = models.explore(_table(policy, kept))
        return explored, measure(explored.values @ start, objective, tail)

    policy = models.problem.mean_mdp.best_actions(allowed, models.problem.discount)
    explored, value = explore(policy)
    for done in range(MOST_ROUNDS):
        share = weights(explored.values @ start, objective, tail)
        score = np.einsum("n,ns,nsa->sa", share, explored.visits, explored.action_values, optimize=True)
        score = np.where(allowed, score, -np.inf)
        gain = score.max(-1) - np.take_along_axis(score, policy[:, None], 1)[:, 0]
        order = np.argsort(-gain, kind="stable")
        changes = int((gain > 1e-12 * (1 + abs(value))).sum())
        while changes:
            chosen = order[:changes]
            candidate = policy.copy()
            candidate[chosen] = score[chosen].argmax(-1)
            tried, new_value = explore(candidate)
            if new_value > value + 1e-10 * (1 + abs(value)):
                policy, explored, value = candidate, tried, new_value
                break
            changes //= 2
        if not changes:
            return policy, value, done
    return policy, value, MOST_ROUNDS
