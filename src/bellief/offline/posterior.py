"""The value posterior: what a policy is worth in each state, and how sure the data make us."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclasses.dataclass(frozen=True, eq=False)
class ValuePosterior:
    """Draws of the value function, one a row, with summaries.

    `samples[n, s]` is the value of state s in draw n; every row is one coherent value function. `start` is the
    distribution over first states that the single number "value of the policy" is averaged over. `sd_exists` says for
    each state whether the posterior has a variance at all: with a heavy-tailed reward prior it does not wherever the
    policy may use a pair that was never tried, and then `sd` is NaN while quantiles remain meaningful.
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

    @property
    def states(self) -> int:
        """Number of states."""
        return self.samples.shape[1]

    @property
    def start_samples(self) -> Float[np.ndarray, "N"]:
        """Draws of the value averaged over first states."""
        return self.samples @ self.start

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
        return _quantile(self.samples, level)

    def interval(self, level: float | None = None) -> tuple[Float[np.ndarray, "S"], Float[np.ndarray, "S"]]:
        """Equal-tailed credible interval of each state's value."""
        tail = (1 - (self.level if level is None else level)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def start_summary(self, level: float | None = None) -> dict[str, float | None]:
        """Mean, sd and credible interval of the value averaged over first states."""
        exists = bool(self.sd_exists[self.start > 0].all())
        return _summary(self.start_samples, exists, self.level if level is None else level)

    def to_dict(self, level: float | None = None) -> dict[str, Any]:
        """Everything but the draws, as plain numbers: the document that `bellief evaluate --json` prints."""
        level = self.level if level is None else level
        low, high = self.interval(level)
        return {
            "method": self.method,
            "states": self.states,
            "actions": self.actions,
            "transitions": self.transitions,
            "discount": self.discount,
            "level": level,
            "start": self.start_summary(level),
            "per_state": [
                {"state": state, "mean": float(mean), "sd": _or_none(sd), "low": float(lower), "high": float(upper)}
                for state, (mean, sd, lower, upper) in enumerate(zip(self.mean, self.sd, low, high, strict=True))
            ],
            "diagnostics": self.diagnostics,
        }

    def to_pandas(self, level: float | None = None) -> pd.DataFrame:
        """One row per state: mean, sd, low, high."""
        return pd.DataFrame(self.to_dict(level)["per_state"]).set_index("state")

    def plot(self, states: list[int] | None = None, ax: "Axes | None" = None) -> "Axes":
        """Densities of the values of some states (all of them up to eight, else the start value)."""
        from bellief.plots.posterior import plot_posterior

        return plot_posterior(self, states, ax)

    def __repr__(self) -> str:
        start = self.start_summary()
        return (
            f"ValuePosterior({self.method}, {self.transitions} transitions, {self.states} states: "
            f"start value {start['mean']:.4g}, {self.level:.0%} interval [{start['low']:.4g}, {start['high']:.4g}])"
        )

    def _repr_html_(self) -> str:
        from bellief.plots.cards import posterior_card

        return posterior_card(self)


def _sd(samples: np.ndarray) -> np.ndarray:
    return samples.std(0, ddof=1) if len(samples) > 1 else np.zeros(samples.shape[1:])


def _quantile(samples: np.ndarray, level: float) -> np.ndarray:
    # Position (n + 1) * level: a further draw falls below it with probability `level` exactly, however few draws.
    return np.quantile(samples, level, axis=0, method="weibull")


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _summary(samples: np.ndarray, sd_exists: bool, level: float) -> dict[str, float | None]:
    tail = (1 - level) / 2
    return {
        "mean": float(samples.mean()),
        "sd": float(_sd(samples)) if sd_exists else None,
        "low": float(_quantile(samples, tail)),
        "high": float(_quantile(samples, 1 - tail)),
    }
