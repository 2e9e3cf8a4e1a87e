"""Do conclusions depend on the prior? The same question under several priors."""

import dataclasses
from typing import Any

import numpy as np

from bellief.errors import UserError
from bellief.evaluation.logged_prior import ROW_WEIGHT, logged_prior
from bellief.evaluation.policy_forms import read_policy
from bellief.evaluation.policy_value import evaluate
from bellief.evaluation.problem import prepare
from bellief.evaluation.sampled import SampledMDPs
from bellief.priors import PRIORS, Prior

ROW_WEIGHTS = (0.03, ROW_WEIGHT, 0.3, 1.0)
REWARD_SCALES = (1 / 3, 3.0)
SURE = 0.95
# Options of an evaluation that a comparison has as well.
PROBLEM = ("reward_scale", "horizon", "start", "terminates", "belief", "support")


def default_grid(data: Any) -> dict[str, Prior]:
    """The default prior, lighter and heavier rows, narrower and wider rewards, and the two named priors."""
    base = logged_prior(data)
    grid = {"logged": base}
    for weight in ROW_WEIGHTS:
        if weight != ROW_WEIGHT:
            grid[f"rows weigh {weight:g}"] = dataclasses.replace(base, row_weight=weight)
    for scale in REWARD_SCALES:
        # A prior this much wider has that much less strength; the noise stays what the log shows.
        wider = dataclasses.replace(base, reward_strength=base.reward_strength / scale**2)
        grid[f"unseen rewards spread {scale:.2g} times"] = wider
    return grid | PRIORS


@dataclasses.dataclass(frozen=True, eq=False)
class Sensitivity:
    """One row per prior: mean, interval and, where a question was asked, the probability and the verdict.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0] * 40, [0.0, 2.0] * 20, [0] * 40)
    >>> priors = {"heavy": "paper", "light": "sparse"}
    >>> found = bellief.prior_sensitivity(data, discount=0.5, priors=priors, draws=50)
    >>> type(found).__name__, [row["prior"] for row in found.rows]
    ('Sensitivity', ['heavy', 'light'])
    """

    rows: list[dict[str, Any]]
    question: str | None
    level: float

    @property
    def flips(self) -> bool:
        """Whether two priors lead to opposite conclusions, or one to a conclusion that another does not support."""
        return len({row["verdict"] for row in self.rows if row["verdict"] is not None}) > 1

    @property
    def disagreements(self) -> list[str]:
        """Priors whose interval misses the default's mean, or whose mean the default's interval misses."""
        base = self.rows[0]
        return [
            row["prior"]
            for row in self.rows[1:]
            if not (row["low"] <= base["mean"] <= row["high"] and base["low"] <= row["mean"] <= base["high"])
        ]

    @property
    def warnings(self) -> list[str]:
        """What the reader should know, in words."""
        found = []
        if self.flips:
            sides = ", ".join(f"{row['prior']}: {row['verdict']}" for row in self.rows)
            found.append(f"The answer to '{self.question}' depends on the prior ({sides}); collect more data.")
        if self.disagreements:
            found.append(
                f"The value moves beyond its interval under other priors ({', '.join(self.disagreements)}): where the "
                "data say little the prior decides."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers: what `bellief sensitivity --json` prints."""
        return {
            "question": self.question,
            "level": self.level,
            "priors": self.rows,
            "flips": self.flips,
            "disagreements": self.disagreements,
            "warnings": self.warnings,
        }


def prior_sensitivity(
    data: Any,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    threshold: float | None = None,
    against: Any = None,
    priors: dict[str, str | Prior] | None = None,
    level: float = 0.9,
    **options: Any,
) -> Sensitivity:
    """The start value under a grid of priors; `options` go to `evaluate`.

    `threshold` asks whether the value is above a number, `against` whether it is above that of another policy. The
    verdict is "yes" or "no" where the posterior is 95% sure of it and "unsure" otherwise; a conclusion flips where the
    verdict is not the same under all priors. The first prior of the grid is the one that others are compared with.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0] * 40, [0.0, 2.0] * 20, [0] * 40)
    >>> priors = {"heavy": "paper", "light": "sparse"}
    >>> bellief.prior_sensitivity(data, discount=0.5, threshold=1.0, priors=priors, draws=50).flips
    False
    """
    if threshold is not None and against is not None:
        raise UserError("Ask one question: give either a threshold or a policy to compare with, not both.")
    question = None
    if threshold is not None:
        question = f"above {threshold:g}"
    elif against is not None:
        question = "above the other policy's value"
    grid = default_grid(data) if priors is None else priors
    if not grid:
        raise UserError("The grid of priors is empty: give at least one.")
    rows = []
    for name, prior in grid.items():
        posterior = evaluate(data, policy, discount, prior=prior, level=level, **options)
        probability = None
        if threshold is not None:
            probability = float(np.mean(posterior.start_samples > threshold))
        elif against is not None:
            probability = float(np.mean(_gaps(data, policy, against, discount, prior, options) > 0))
        summary = posterior.start_summary()
        found: dict[str, Any] = {"prior": name} | {field: summary[field] for field in ("mean", "low", "high")}
        rows.append(found | {"probability": probability, "verdict": _verdict(probability)})
    return Sensitivity(rows, question, level)


def _verdict(probability: float | None) -> str | None:
    if probability is None:
        return None
    return "yes" if probability >= SURE else "no" if probability <= 1 - SURE else "unsure"


def _gaps(data: Any, policy: Any, other: Any, discount: float, prior: Any, options: dict[str, Any]) -> np.ndarray:
    """Draws of the difference of two policies' start values, both in the same sampled MDPs, as `compare` has them."""
    shared = {name: value for name, value in options.items() if name in PROBLEM}
    draws, seed = options.get("draws", 1000), options.get("seed", 0)
    problem = prepare(data, discount, prior=prior, draws=draws, **shared)
    both = np.stack([read_policy(one, problem.log) for one in (policy, other)])
    values = problem.start_values(SampledMDPs(problem, seed, draws).values(both), seed)
    return values[:, 0] - values[:, 1]
