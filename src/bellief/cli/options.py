"""Reading the values of options; a value that cannot be used is refused before anything slow is imported."""

import functools
import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bellief.cli.failures import OptionError
from bellief.errors import UserError, shorten

PICTURES = (".pdf", ".png", ".svg")
SEEDS = 2**32 - 1
# Of every whole number for which no other limit is given: compiled programs count in 32 bits.
LARGEST = 2**31 - 1


def whole(option: str, least: int = 0, most: int | None = None) -> Callable[[str], int]:
    """Reader of a whole number from `least` to `most`."""
    bounds = f"be at least {least}" if most is None else f"lie between {least} and {most}"
    largest = LARGEST if most is None else most

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise OptionError(f"{option} needs a whole number, not '{shorten(text, 40)}'.") from None
        if number > largest:
            raise OptionError(f"{option} must be at most {largest}, not {shorten(text, 40)}.")
        if number < least:
            raise OptionError(f"{option} must {bounds}, not {shorten(text, 40)}.")
        return number

    return read


def between(option: str, low: float, high: float, includes_high: bool = False) -> Callable[[str], float]:
    """Reader of a number above `low` and below `high`, or up to it."""
    interval = f"({low:g}, {high:g}{']' if includes_high else ')'}"
    bounds = f"lie in {interval}" if math.isfinite(high) else f"be a finite number above {low:g}"

    def read(text: str) -> float:
        given = number(option)(text)
        if not (low < given < high or (includes_high and given == high)):
            raise OptionError(f"{option} must {bounds}, not {shorten(text, 40)}.")
        return given

    return read


def number(option: str) -> Callable[[str], float]:
    """Reader of any number."""

    def read(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise OptionError(f"{option} needs a number, not '{shorten(text, 40)}'.") from None

    return read


def count(option: str, text: str, most: int | None = None) -> Any:
    """An option that takes a whole number from 1."""
    return typer.Option(option, parser=whole(option, 1, most), metavar="N", help=text)


def picture(text: str) -> Path:
    """Reader of the path of a picture that can be written."""
    return _writable("--plot", text, PICTURES, ".png, .svg or .pdf")


def page(option: str) -> Callable[[str], Path]:
    """Reader of the path of a page that can be written."""
    return lambda text: _writable(option, text, (".html", ".htm"), ".html")


def _writable(option: str, text: str, endings: tuple[str, ...], said: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in endings:
        raise OptionError(f"{option} needs a file name that ends in {said}, not '{text}'.")
    if path.is_dir():
        raise OptionError(f"{option} needs a file, and {path} is a folder.")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"{option} cannot write {path}, because its folder does not exist; make the folder first.")
    return path


def scale(text: str) -> float | str:
    """Reader of a reward scale."""
    return text if text == "data" else between("--reward-scale", 0, math.inf)(text)


def accuracy(text: str) -> float:
    """Reader of an accuracy, whose bounds are those of `evaluate` and `compare`."""
    share = number("--accuracy")(text)
    from bellief.evaluation.question_checks import check_accuracy

    try:
        check_accuracy(share)
    except UserError as error:
        raise OptionError(f"--{error}") from None
    return share


def names_or_number(option: str) -> Callable[[str], int | list[str]]:
    """Reader of a number of things or, with commas, of their labels."""

    def read(text: str) -> int | list[str]:
        return [name.strip() for name in text.split(",")] if "," in text else whole(option, 1)(text)

    return read


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Seed = Annotated[
    int, typer.Option(parser=whole("--seed", 0, SEEDS), metavar="N", help="Same seed, same result, bit for bit.")
]
Plot = Annotated[
    Path | None,
    typer.Option(parser=picture, metavar="FILE", help="Draw into a .png, .svg or .pdf file (replaced if it exists)."),
]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of its parameters that are named tuples of options."""
    own = inspect.signature(command).parameters
    groups = {name: one.annotation for name, one in own.items() if hasattr(one.annotation, "_fields")}
    parameters = []
    for name, parameter in own.items():
        if name not in groups:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        kinds, defaults = groups[name].__annotations__, groups[name]._field_defaults
        parameters += [
            inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=defaults[field], annotation=kinds[field])
            for field in groups[name]._fields
        ]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        whole = {name: group(*(given.pop(field) for field in group._fields)) for name, group in groups.items()}
        command(**given, **whole)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {one.name: one.annotation for one in parameters}
    return wrapper


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
