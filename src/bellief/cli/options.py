"""Reading the values of options; a value that cannot be used is told at once, before anything slow is imported."""

import math
from collections.abc import Callable
from pathlib import Path

from bellief.cli.failures import OptionError
from bellief.errors import UserError

PICTURES = (".pdf", ".png", ".svg")


def whole(option: str, least: int = 0, most: int | None = None) -> Callable[[str], int]:
    """Reader of a whole number from `least` to `most`."""
    bounds = f"be at least {least}" if most is None else f"lie between {least} and {most}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise OptionError(f"{option} needs a whole number, not '{text}'.") from None
        if number < least or (most is not None and number > most):
            raise OptionError(f"{option} must {bounds}, not {text}.")
        return number

    return read


def between(option: str, low: float, high: float, includes_high: bool = False) -> Callable[[str], float]:
    """Reader of a number above `low` and below `high`, or up to it."""
    interval = f"({low:g}, {high:g}{']' if includes_high else ')'}"
    bounds = f"lie in {interval}" if math.isfinite(high) else f"be a finite number above {low:g}"

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise OptionError(f"{option} needs a number, not '{text}'.") from None
        if not (low < number < high or (includes_high and number == high)):
            raise OptionError(f"{option} must {bounds}, not {text}.")
        return number

    return read


def picture(text: str) -> Path:
    """Reader of the path of a picture that can be written."""
    path = Path(text)
    if path.suffix.lower() not in PICTURES:
        raise OptionError(f"--plot needs a file name that ends in .png, .svg or .pdf, not '{text}'.")
    if path.is_dir():
        raise OptionError(f"--plot needs a file, and {path} is a folder.")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"--plot cannot write {path}, because its folder does not exist; make the folder first.")
    return path


def split_settings(assignments: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """`name=value` texts as settings of the agent and, where the name begins with `env.`, of the environment."""
    agent: dict[str, str] = {}
    environment: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = (part.strip() for part in assignment.partition("="))
        if not name or not equals or not value:
            raise UserError(f"--set needs NAME=VALUE, for example horizon=50, not '{assignment}'.")
        settings = environment if name.startswith("env.") else agent
        name = name.removeprefix("env.")
        if name in settings:
            raise UserError(f"--set gives '{name}' twice; keep one of them.")
        settings[name] = value
    return agent, environment
