"""What a person asked on the page: read and checked, and written as a command and as Python."""

import dataclasses
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellief.app.opened_log import OpenedLog
from bellief.errors import UserError
from bellief.evaluation.logged_prior import ROW_WEIGHT
from bellief.logs.labels import find

SAVED = "saved:"
ALWAYS = "always:"
DRAWS = 1000
LONGEST_HORIZON = 100_000


@dataclasses.dataclass(frozen=True)
class Settings:
    """The sliders. `prior_weight` is how many observations the prior weighs in each row."""

    discount: float
    level: float = 0.9
    horizon: int | None = None
    prior_weight: float = ROW_WEIGHT
    reward_range: tuple[float, float] | None = None

    @property
    def prior(self) -> str:
        """The prior by its name."""
        return "logged" if self.prior_weight == ROW_WEIGHT else f"logged:{self.prior_weight:g}"

    def options(self, *wanted: str) -> dict[str, Any]:
        """Keyword arguments of the Python functions, those that are not at their defaults."""
        given: dict[str, tuple[Any, Any]] = {
            "level": (self.level, 0.9),
            "horizon": (self.horizon, None),
            "prior": (self.prior, "logged"),
        }
        given["reward_range"] = (self.reward_range, None)
        return {name: value for name, (value, usual) in given.items() if name in wanted and value != usual}


def read_settings(given: Mapping[str, Any]) -> Settings:
    """The sliders from a request; what is not a number in its range is refused in a sentence."""
    horizon = given.get("horizon")
    return Settings(
        discount=_number(given, "discount", 0, 1, includes_high=True),
        level=_number(given, "level", 0, 1),
        horizon=None if horizon is None else int(_number(given, "horizon", 0.999, LONGEST_HORIZON)),
        prior_weight=_number(given, "prior_weight", 0, 1e6),
        reward_range=_range(given.get("reward_range")),
    )


def _number(given: Mapping[str, Any], name: str, low: float, high: float, includes_high: bool = False) -> float:
    value = given.get(name)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not usable or not (low < value < high or (includes_high and value == high)):  # type: ignore[operator]
        raise UserError(f"{name.replace('_', ' ')} must lie between {low:g} and {high:g}.")
    return float(value)  # type: ignore[arg-type]


def _range(given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != 2:
        raise UserError("The reward range needs two numbers, the smallest and the largest possible reward.")
    ends = {"smallest reward": given[0], "largest reward": given[1]}
    low, high = (_number(ends, name, -math.inf, math.inf) for name in ends)
    return low, high


def read_policy_name(given: Any, log: OpenedLog, saved: Mapping[str, np.ndarray]) -> tuple[str, Any]:
    """The policy of a request: how it is called, and what the Python functions take.

    Never a path: a page must not make the server read files of its machine.
    """
    text = str(given)
    if text in ("behaviour", "uniform"):
        return text, text
    if text.startswith(ALWAYS):
        find("action", text.removeprefix(ALWAYS), log.tally.actions, log.tally.action_labels)
        return text, text
    name = text.removeprefix(SAVED)
    if text.startswith(SAVED) and name in saved:
        return name, saved[name]
    raise UserError(f"There is no policy '{text}' on this page; choose one of those that it lists.")


def command(verb: str, log: OpenedLog, words: Sequence[str], options: Mapping[str, Any]) -> str:
    """The command line that gives an answer."""
    parts = ["bellief", verb, log.name, *words]
    if log.columns:
        options = {"columns": ",".join(f"{role}={column}" for role, column in log.columns.items()), **options}
    for name, value in options.items():
        parts.append(f"--{name.replace('_', '-')}")
        parts += [_text(part) for part in (value if isinstance(value, tuple) else (value,))]
    return shlex.join(parts)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def snippet(function: str, log: OpenedLog, arguments: Sequence[Any], options: Mapping[str, Any], after: str) -> str:
    """The Python that gives the same answer."""
    lines = ["import bellief", ""]
    source = repr(log.name)
    if log.columns:
        lines.append(f"log = bellief.as_tally({source}, columns={dict(log.columns)!r})")
        source = "log"
    told = [
        source,
        *(repr(argument) for argument in arguments),
        *(f"{name}={value!r}" for name, value in options.items()),
    ]
    return "\n".join([*lines, f"answer = bellief.{function}({', '.join(told)})", after])
