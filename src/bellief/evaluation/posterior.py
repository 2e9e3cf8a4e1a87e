"""The value posterior: the value of a policy in each state, and its uncertainty."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bellief.errors import UserError
from bellief.evaluation.diagnostics import CANNOT_TELL, explain
from bellief.evaluation.start_law import StartLaw
from bellief.logs.labels import find

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Methods whose numbers have a Monte Carlo error.
DRAWN = ("joint", "monte-carlo", "bootstrap")

KINDS = ("equal-tailed", "highest-density")


@dataclasses.dataclass(frozen=True, eq=False)
class ValuePosterior:
    """Draws of the value function, one a row, with summaries.

    `samples[n, s]` is the value of state s in draw n; every row is one coherent value function. `start` is the
    distribution over first states that the single number "value of the policy" is averaged over. `sd_exists` says for
    each state whether the posterior has a variance at all: with a heavy-tailed reward prior it does not wherever the
    policy may use a pair that was never tried, and then `sd` is NaN while quantiles remain meaningful. `start_draws`
    are draws of the start value where the first states are uncertain too; without them it is `samples @ start`. `ends`
    marks states in which the log's episodes only ever end: they are worth zero, and tables and pictures leave them out.
    `start_law` is a better estimate of the start value's law than its draws are (`evaluation.start_law`): summaries
    and probabilities of the start value come from it where there is one.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0, 1] * 20, [0, 0] * 20, [2.0, 0.0] * 20, [1, 0] * 20)
    >>> value = bellief.evaluate(data, discount=0.5, draws=100)
    >>> isinstance(value, bellief.ValuePosterior), value.samples.shape, sorted(value.start_summary())
    (True, (100, 2), ['high', 'low', 'mean', 'sd'])
    >>> value.prob(lambda values: values > 1, state=0)
    1.0
    """

    samples: Float[np.ndarray, "N S"]
    start: Float[np.ndarray, "S"]
    method: str
    discount: float
    actions: int
    transitions: int
    sd_exists: Bool[np.ndarray, "S"]
    diagnostics: dict[str, Any]
    level: float = 0.9
    state_labels: tuple[str, ...] | None = None
    start_draws: Float[np.ndarray, "N"] | None = None
    ends: Bool[np.ndarray, "S"] | None = None
    start_law: StartLaw | None = None

    @property
    def states(self) -> int:
        """Number of states."""
        return self.samples.shape[1]

    @property
    def state_names(self) -> Sequence[int | str]:
        """What to call each state: its label, or its number."""
        return range(self.states) if self.state_labels is None else self.state_labels

    @property
    def listed(self) -> Int[np.ndarray, "s"]:
        """States that tables and pictures show: all except those in which episodes only end."""
        return np.arange(self.states) if self.ends is None else np.flatnonzero(~self.ends)

    @property
    def start_samples(self) -> Float[np.ndarray, "N"]:
        """Draws of the value averaged over first states."""
        return self.samples @ self.start if self.start_draws is None else self.start_draws

    @property
    def supported(self) -> float | None:
        """Share of the policy's discounted time in pairs that the log saw often enough (`evaluation.knowledge`)."""
        return self.diagnostics.get("supported")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The start value if everything rarely seen turned out at its worst, and at its best; None where there is no
        bound.
        """
        bounds = self.diagnostics.get("bounds")
        return None if bounds is None else (float(bounds[0]), float(bounds[1]))

    @property
    def cannot_tell(self) -> str | None:
        """The warning that the log does not determine the value, where there is one."""
        first = [one for one in self.diagnostics.get("warnings", []) if one.startswith(CANNOT_TELL)]
        return first[0] if first else None

    def samples_of(self, state: int | str | None = None) -> Float[np.ndarray, "N"]:
        """Draws of the value of one state, by label or number; without one, of the start value."""
        if state is None:
            return self.start_samples
        return self.samples[:, find("state", state, self.states, self.state_labels)]

    @property
    def mean(self) -> Float[np.ndarray, "S"]:
        """Posterior mean of each state's value."""
        return self.samples.mean(0)

    @property
    def sd(self) -> Float[np.ndarray, "S"]:
        """Posterior standard deviation of each state's value; NaN where it does not exist."""
        return np.where(self.sd_exists, _sd(self.samples), np.nan)

    def quantile(self, level: float) -> Float[np.ndarray, "S"]:
        """Posterior quantile of each state's value, corrected for the finite number of draws."""
        if not 0 <= level <= 1:
            raise UserError(f"A quantile's level must lie between 0 and 1, not {level}.")
        return quantile(self.samples, level)

    def interval(
        self, level: float | None = None, kind: str = "equal-tailed"
    ) -> tuple[Float[np.ndarray, "S"], Float[np.ndarray, "S"]]:
        """Credible interval of each state's value: `equal-tailed`, or the shortest one (`highest-density`)."""
        return interval(self.samples, self._level(level), kind)

    def prob(self, predicate: Callable[[np.ndarray], Any], state: int | str | None = None) -> float:
        """Posterior probability of a statement about the start value, or that of a state: `prob(lambda v: v > 10)`."""
        values = self._start_points if state is None else self.samples_of(state)
        answers = np.asarray(predicate(values))
        if answers.shape != values.shape:
            answers = np.array([bool(predicate(value)) for value in values])
        if answers.dtype != bool:
            raise UserError("A statement must be true or false for each value, as in prob(lambda v: v > 10).")
        return float(answers.mean())

    def start_summary(self, level: float | None = None, kind: str = "equal-tailed") -> dict[str, float | None]:
        """Mean, sd and credible interval of the value averaged over first states."""
        exists = bool(self.sd_exists[self.start > 0].all())
        return summarise_values(self._start_points, exists, self._level(level), kind)

    @property
    def _start_points(self) -> Float[np.ndarray, "N"]:
        """Equally likely start values: points of the law, or the draws."""
        return self.start_samples if self.start_law is None else self.start_law.points

    def start_errors(self, level: float | None = None) -> "Errors | None":
        """Monte Carlo errors of the start value's mean and of the ends of its interval; None where nothing was drawn
        or too little.
        """
        if self.method not in DRAWN:
            return None
        return errors_of(self.start_samples, self._level(level), self.start_law)

    def explain(self) -> list[str]:
        """Diagnostics and warnings, in sentences."""
        return explain(len(self.samples), self.method, self.diagnostics, self._interval_error(), self.level)

    def _level(self, level: float | None) -> float:
        level = self.level if level is None else level
        if not 0 < level < 1:
            raise UserError(f"level must lie between 0 and 1, not {level}.")
        return level

    def _interval_error(self) -> float | None:
        """The larger Monte Carlo error of the interval's ends."""
        errors = errors_of(self.start_samples, self.level, self.start_law)
        return None if errors is None else max(errors.low, errors.high)

    def to_dict(self, level: float | None = None) -> dict[str, Any]:
        """Everything but the draws, as plain numbers: the document that `bellief evaluate --json` prints."""
        level = self._level(level)
        names, numbers = self.state_names, (self.mean, self.sd, *self.interval(level))
        listed = self.listed
        rows = zip(listed, *(number[listed] for number in numbers), strict=True)
        return {
            "method": self.method,
            "states": self.states,
            "actions": self.actions,
            "transitions": self.transitions,
            "discount": self.discount,
            "level": level,
            "start": self.start_summary(level),
            "monte_carlo_error": None if (errors := self.start_errors(level)) is None else errors.to_dict(),
            "per_state": [
                {
                    "state": names[state],
                    "mean": float(mean),
                    "sd": float(sd) if np.isfinite(sd) else None,
                    "low": float(lower),
                    "high": float(upper),
                }
                for state, mean, sd, lower, upper in rows
            ],
            "ends": [names[state] for state in np.setdiff1d(np.arange(self.states), listed)],
            "diagnostics": self.diagnostics,
        }

    def to_pandas(self, level: float | None = None) -> "pd.DataFrame":
        """One row per state, except those in which episodes only end: mean, sd, low, high."""
        import pandas as pd

        return pd.DataFrame(self.to_dict(level)["per_state"]).set_index("state")

    def to_arviz(self) -> Any:
        """The draws for ArviZ: InferenceData (before 1.0) or a DataTree, with `value` by state and `start_value`."""
        from bellief.evaluation.exchange import to_arviz

        return to_arviz(self)

    def save(self, path: str | os.PathLike) -> Path:
        """Write a NumPy archive (.npz) without pickle."""
        from bellief.evaluation.exchange import save

        return save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "ValuePosterior":
        """Read what `save` wrote; nothing in the file is executed."""
        from bellief.evaluation.exchange import load

        return load(path)

    def plot(self, states: Sequence[int | str] | None = None, ax: "Axes | None" = None) -> "Axes":
        """Densities of the values of some states (all of them up to eight, else the start value)."""
        from bellief.plots.value_pictures import plot_posterior

        if states is not None:
            states = [find("state", state, self.states, self.state_labels) for state in states]
        return plot_posterior(self, states, ax)  # type: ignore[arg-type]  # numbers by now

    def __repr__(self) -> str:
        start = self.start_summary()
        return (
            f"ValuePosterior({self.method}, {self.transitions} transitions, {self.states} states: "
            f"start value {start['mean']:.4g}, {self.level:.0%} interval [{start['low']:.4g}, {start['high']:.4g}])"
        )

    def _repr_html_(self) -> str:
        from bellief.plots.cards import posterior_card

        return posterior_card(self)


class Errors(NamedTuple):
    """Monte Carlo (standard) errors of a mean and of the ends of an interval, and the larger of the ends' errors as a
    share of the interval's width.
    """

    mean: float
    low: float
    high: float
    share_of_width: float

    def to_dict(self) -> dict[str, float]:
        """Plain numbers."""
        return self._asdict()


def errors_of(samples: Float[np.ndarray, "N"], level: float, law: StartLaw | None = None) -> Errors | None:
    """Errors of summaries from a law or, without one, from draws; None with fewer than 20 draws."""
    tail, count = (1 - level) / 2, len(samples)
    if law is not None:
        mean, low, high = law.mean_error, law.error_at(tail), law.error_at(1 - tail)
        width = float(np.subtract(*np.quantile(law.points, [1 - tail, tail])))
    elif count < 20:
        return None
    else:
        # Half the distance of the order statistics one error of the level apart.
        error = np.sqrt(tail * (1 - tail) / count)
        ends = [np.quantile(samples, np.clip([p - error, p, p + error], 0, 1)) for p in (tail, 1 - tail)]
        low, high = (float(end[2] - end[0]) / 2 for end in ends)
        mean, width = float(np.std(samples)) / np.sqrt(count), float(ends[1][1] - ends[0][1])
    return Errors(float(mean), low, high, max(low, high) / width if width > 0 else 0.0)


def interval(samples: Float[np.ndarray, "N *rest"], level: float, kind: str = "equal-tailed"):
    """Both ends of a credible interval, along the first axis."""
    if kind == "equal-tailed":
        return quantile(samples, (1 - level) / 2), quantile(samples, (1 + level) / 2)
    if kind != "highest-density":
        raise UserError(f"There is no interval '{kind}'; choose one of {', '.join(KINDS)}.")
    ordered = np.sort(samples, axis=0)
    # The number of draws inside for which a further draw falls between the ends, draws too, with probability `level`.
    inside = min(len(ordered), max(1, int(np.ceil(level * (len(ordered) + 1)))))
    widths = ordered[inside - 1 :] - ordered[: len(ordered) - inside + 1]
    first = np.argmin(widths, axis=0)[None]
    low = np.take_along_axis(ordered, first, 0)[0]
    return low, np.take_along_axis(ordered, first + inside - 1, 0)[0]


def _sd(samples: np.ndarray) -> np.ndarray:
    return samples.std(0, ddof=1) if len(samples) > 1 else np.zeros(samples.shape[1:])


def quantile(samples: np.ndarray, level: float) -> np.ndarray:
    """Quantile along the first axis."""
    # Position (n + 1) * level: a further draw falls below it with probability `level` exactly, however few draws.
    return np.quantile(samples, level, axis=0, method="weibull")


def summarise_values(
    samples: Float[np.ndarray, "N"], sd_exists: bool, level: float, kind: str = "equal-tailed"
) -> dict[str, float | None]:
    """Mean, sd (None where it does not exist) and interval of draws of one number."""
    low, high = interval(samples, level, kind)
    sd = float(_sd(samples)) if sd_exists else None
    return {"mean": float(samples.mean()), "sd": sd, "low": float(low), "high": float(high)}
