"""Tests of the model's assumptions about a log, which need no knowledge of the environment, with valid p values.

- Markov: given state and action, is the next state independent of the state before?
- Drift: given state and action, does the second half of the log differ from the first?
- Reward shape: have rewards heavier tails than the Gaussian noise that the model expects?
- Reward outliers: single rewards that their own outcome's other rewards make incredible.

The first two permute what should not matter within each state-action pair, the third draws the whole log's rewards
again from the fitted model (a posterior predictive check with the fit plugged in), the last is the leave-one-out
predictive of each row, corrected for the number of rows.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bellief.errors import UserError
from bellief.evaluation.question_checks import check_numbers
from bellief.logs.feature_columns import refuse_features
from bellief.logs.transitions import Transitions
from bellief.watch import pause_point

# Rows that take part in a permutation test; more add time and little power.
MOST_ROWS = 20_000
ALARM = 0.01
MOST_SHOWN = 5

# A value that occurs this often is part of how the environment pays, however rare it is.
OFTEN = 3


@dataclasses.dataclass(frozen=True, eq=False)
class LogCheck:
    """p values (None where a log is too short), rows with outlying rewards, and the findings in words.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0, 1] * 20, [0, 0] * 20, [0.0, 2.0] * 20, [1, 0] * 20)
    >>> found = bellief.check(data, permutations=99)
    >>> type(found).__name__, found.outliers, found.markov
    ('LogCheck', [], None)
    """

    markov: float | None
    drift: float | None
    reward_shape: float | None
    outliers: list[dict[str, Any]]
    compared: int
    transitions: int

    @property
    def warnings(self) -> list[str]:
        """One sentence for each finding."""
        found = []
        if self.markov is not None and self.markov < ALARM:
            found.append(
                f"The state before still tells where the next one will be (p = {self.markov:.3g}): the states do not "
                "hold everything that matters, so intervals are not to be trusted; add what is missing to the state."
            )
        if self.drift is not None and self.drift < ALARM:
            found.append(
                f"The second half of the log behaves differently from the first (p = {self.drift:.3g}): something "
                "changed; evaluate the recent part alone."
            )
        if self.reward_shape is not None and self.reward_shape < ALARM:
            found.append(
                f"Rewards of the same outcome have heavier tails than Gaussian noise (p = {self.reward_shape:.3g}): "
                "means of rarely seen outcomes are less sure than the intervals say."
            )
        if self.outliers:
            shown = ", ".join(f"row {one['row']} ({one['reward']:g})" for one in self.outliers[:MOST_SHOWN])
            more = f" and {len(self.outliers) - MOST_SHOWN} more" if len(self.outliers) > MOST_SHOWN else ""
            found.append(f"Rewards that do not fit the others of their outcome: {shown}{more}; check these rows.")
        if self.markov is None:
            found.append("Too few steps share a state and action after different states to test the Markov property.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers: what `bellief check --json` prints."""
        return dataclasses.asdict(self) | {"warnings": self.warnings}


def check(data: Transitions, *, permutations: int = 999, seed: int = 0) -> LogCheck:
    """Test a log for the assumptions of evaluation.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 41, [0] * 41, [0.0, 2.0] * 20 + [500.0], [0] * 41)
    >>> bellief.check(data, permutations=99).outliers[0]["row"]
    41
    """
    check_numbers(1.0, 0.5, seed, permutations=permutations)
    refuse_features(getattr(data, "feature_names", ()))
    if len(data) < 2:
        raise UserError("A log of one transition cannot be checked: it needs at least two.")
    rng = np.random.default_rng(seed)
    pair = data.state.astype(np.int64) * data.actions + data.action
    outcome = np.where(data.terminated, data.states, data.next_state)
    follows = np.flatnonzero(~data.first)
    half = (np.arange(len(data)) >= len(data) // 2).astype(np.int64)
    before = data.state[follows - 1].astype(np.int64)
    markov, compared = _association(rng, pair[follows], before, outcome[follows], permutations)
    return LogCheck(
        markov=markov,
        drift=_association(rng, pair, half, outcome, permutations)[0],
        reward_shape=_heavy_tails(rng, pair * (data.states + 1) + outcome, data.reward, permutations),
        outliers=_outliers(pair * (data.states + 1) + outcome, data.reward),
        compared=compared,
        transitions=len(data),
    )


def _association(
    rng: np.random.Generator,
    stratum: Int[np.ndarray, "n"],
    label: Int[np.ndarray, "n"],
    outcome: Int[np.ndarray, "n"],
    permutations: int,
) -> tuple[float | None, int]:
    """p value of "outcome is independent of label within each stratum", and how many rows the test uses.

    The likelihood-ratio statistic, compared with itself after labels were shuffled within strata. Shuffling keeps all
    margins, of which only the sum of n log n over cells (stratum, label, outcome) is left to compare.
    """
    useful = _varies(stratum, label) & _varies(stratum, outcome)
    stratum, label, outcome = stratum[useful], label[useful], outcome[useful]
    if len(stratum) > MOST_ROWS:
        kept = np.sort(rng.choice(len(stratum), MOST_ROWS, replace=False))
        stratum, label, outcome = stratum[kept], label[kept], outcome[kept]
    if len(stratum) < 2:
        return None, len(stratum)
    order = np.argsort(stratum, kind="stable")
    stratum = np.unique(stratum[order], return_inverse=True)[1]
    label, outcome = label[order], np.unique(outcome[order], return_inverse=True)[1]
    cell = (stratum * (int(label.max()) + 1)) * (int(outcome.max()) + 1) + outcome
    step = int(outcome.max()) + 1

    def statistic(labels):
        times = np.unique(cell + labels * step, return_counts=True)[1]
        return float((times * np.log(times)).sum())

    observed = statistic(label)
    larger = 0
    for done in range(permutations):
        pause_point(done / permutations)
        # Random keys sorted within strata shuffle all strata at once.
        shuffled = label[np.argsort(stratum + rng.random(len(stratum)), kind="stable")]
        larger += statistic(shuffled) >= observed - 1e-9
    return (1 + larger) / (1 + permutations), len(stratum)


def _varies(group: np.ndarray, what: np.ndarray) -> np.ndarray:
    """Rows of groups in which `what` has more than one value."""
    number = np.unique(group, return_inverse=True)[1]
    low, high = (np.full(number.max() + 1 if len(number) else 1, end, np.int64) for end in (2**62, -1))
    np.minimum.at(low, number, what)
    np.maximum.at(high, number, what)
    return low[number] < high[number]


def _residuals(group: np.ndarray, reward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rewards minus their group's mean in units of its spread, and the group's number; spreadless ones left out."""
    number = np.unique(group, return_inverse=True)[1]
    times = np.bincount(number)
    apart = reward - (np.bincount(number, weights=reward) / times)[number]
    spread = np.sqrt(np.bincount(number, weights=apart**2) / times)
    kept = (times[number] >= 5) & (spread[number] > 1e-9 * (1 + np.abs(reward).max()))
    return apart[kept] / spread[number][kept], number[kept]


def _heavy_tails(rng: np.random.Generator, group: np.ndarray, reward: np.ndarray, replications: int) -> float | None:
    """p value of the fourth moment of standardised rewards, against logs with the same groups and Gaussian noise."""
    residual, number = _residuals(group, reward)
    if len(residual) < 20:
        return None
    if len(residual) > MOST_ROWS:  # whole groups, or their standardisation would no longer hold
        kept = number <= number[np.argsort(number, kind="stable")][MOST_ROWS]
        residual, number = residual[kept], number[kept]
    observed = float((residual**4).mean())
    larger = 0
    for done in range(replications):
        pause_point(done / replications)
        again, _ = _residuals(number, rng.normal(size=len(number)))
        larger += float((again**4).mean()) >= observed
    return (1 + larger) / (1 + replications)


def _outliers(group: np.ndarray, reward: Float[np.ndarray, "n"]) -> list[dict[str, Any]]:
    """Rows whose reward the other rewards of the same outcome make incredible, by Student's predictive distribution.

    Where the others are all equal their spread is unknown, not zero: a thousandth of the log's is used.
    """
    from scipy import stats

    number = np.unique(group, return_inverse=True)[1]
    times = np.bincount(number)[number]
    total = np.bincount(number, weights=reward)[number]
    kept = times >= 5
    others = times - 1.0
    mean = (total - reward) / np.maximum(others, 1)
    apart = reward - (total / times)
    squares = np.bincount(number, weights=apart**2)[number] - apart**2 * times / np.maximum(others, 1)
    floor = max(1e-3 * float(reward.std()), 1e-12)
    spread = np.sqrt(np.maximum(squares, 0) / np.maximum(others - 1, 1) + floor**2)
    distance = np.abs(reward - mean) / (spread * np.sqrt(1 + 1 / np.maximum(others, 1)))
    chance = 2 * stats.t.sf(distance, np.maximum(others - 1, 1)) * max(int(kept.sum()), 1)
    _, value, occurs = np.unique(reward, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(kept & (chance < ALARM) & (occurs[value] < OFTEN))
    rows = rows[np.argsort(chance[rows], kind="stable")]
    return [{"row": int(row) + 1, "reward": float(reward[row]), "p": float(min(chance[row], 1))} for row in rows]
