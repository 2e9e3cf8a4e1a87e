"""A log that the page has opened: counts for every question, and which columns were used as what."""

import csv
import dataclasses
import io
import itertools
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bellief.errors import UserError, shorten
from bellief.evaluation.logged_prior import ROW_WEIGHT
from bellief.logs import Tally, as_log, as_transitions
from bellief.logs.columns import NAMES, roles_of
from bellief.logs.engine import open_binary
from bellief.logs.examples import EXAMPLES, PREFIX, example_path
from bellief.logs.paths import LogFile, log_file
from bellief.logs.sources import file_columns

FIRST_ROWS = 6
LONGEST_CELL = 60
# Logs with more rows are checked when asked for.
CHECKED_AT_ONCE = 20_000
_ROW = re.compile(r"\brow (\d{1,12})\b")


@dataclasses.dataclass(frozen=True, eq=False)
class OpenedLog:
    """A log that was read. `name` is what the person calls it, `path` where it lies."""

    path: Path
    name: str
    columns: Mapping[str, str]
    tally: Tally
    discount: float = 0.95

    @property
    def argument(self) -> str:
        """The log as a word of a command."""
        return shlex.quote(self.name)


def example_source(name: str) -> tuple[Path, str]:
    """Path and name of a log that comes with the package."""
    return Path(example_path(PREFIX + name)), PREFIX + name


def open_log(
    path: Path, name: str, columns: Mapping[str, str], progress: Callable[[float], None] | None = None
) -> OpenedLog:
    """Read a log; what is wrong with it is said as the command line says it."""
    try:
        log = as_log(path, columns=columns or None, progress=progress)
    except UserError as error:
        raise UserError(str(error).replace(str(path), name)) from None
    if hasattr(log, "feature_names"):
        raise UserError(
            f"{name}: the states of this log are vectors, which this page does not show: use "
            f"'bellief evaluate {shlex.quote(name)} --report value.html'."
        )
    example = EXAMPLES.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    return OpenedLog(path, name, dict(columns), log, 0.95 if example is None else example.discount)


def rows_of(log: OpenedLog) -> Any:
    """The rows, for what needs their order."""
    return as_transitions(log.path, columns=log.columns or None)


def describe(log: OpenedLog) -> dict[str, Any]:
    """What was read: sizes, labels, columns, first rows."""
    tally, origin = log.tally, log.tally.origin
    table = preview(log.path)
    return {
        "name": log.name,
        "rows": tally.transitions,
        "states": tally.states,
        "actions": tally.actions,
        "episodes": tally.episodes,
        "ends": tally.ends,
        "reward_low": tally.reward_low,
        "reward_high": tally.reward_high,
        "action_names": [str(action) for action in names(tally.actions, tally.action_labels)],
        "taken": origin.columns,
        "unused": list(origin.unused),
        "notes": [note.replace(str(log.path), log.name) for note in origin.notes],
        "discount": log.discount,
        "prior_weight": ROW_WEIGHT,
        "check_at_once": tally.transitions <= CHECKED_AT_ONCE,
        **table,
    }


def names(size: int, labels: Sequence[str] | None) -> Sequence[int | str]:
    """What to call states or actions."""
    return range(size) if labels is None else labels


def failure(path: Path, name: str, columns: Mapping[str, str], error: UserError) -> dict[str, Any]:
    """A sentence about a file that cannot be read, its columns, and the rows around the bad one."""
    sentence = str(error).replace(str(path), name)
    found = _ROW.search(sentence)
    row = int(found.group(1)) if found else None
    told: dict[str, Any] = {"error": sentence, "name": name, "row": row, "taken": dict(columns)}
    try:
        told |= preview(path, max(0, row - 3) if row else 0)
        told["taken"] = roles_of(told["columns"], columns)
    except (UserError, OSError, ValueError, EOFError):
        pass
    return told


def preview(path: Path, first: int = 0, count: int = FIRST_ROWS) -> dict[str, Any]:
    """Column names, the possible roles, and some rows from row `first` + 1 on, as texts."""
    file = log_file(path)
    header = [str(name) for name in file_columns(file)]
    rows = _parquet_rows(file, first, count) if file.format == "parquet" else _text_rows(file, header, first, count)
    return {
        "columns": [_cell(name) for name in header],
        "roles": list(NAMES),
        "first_row": first + 1,
        "preview": [[_cell(cell) for cell in row] for row in rows],
    }


def _text_rows(file: LogFile, header: Sequence[str], first: int, count: int) -> list[list[Any]]:
    with io.TextIOWrapper(cast(Any, open_binary(file)), "utf-8-sig", errors="replace", newline="") as text:
        if file.format == "json":
            objects = (json.loads(line) for line in itertools.islice(text, first, first + count) if line.strip())
            return [[one.get(name, "") for name in header] for one in objects]
        try:
            return list(itertools.islice(csv.reader(text), first + 1, first + 1 + count))
        except csv.Error:
            return []


def _parquet_rows(file: LogFile, first: int, count: int) -> list[list[Any]]:
    import pyarrow.parquet

    rows: list[list[Any]] = []
    passed = 0
    for batch in pyarrow.parquet.ParquetFile(file.path).iter_batches(65_536):
        if passed + batch.num_rows > first:
            part = batch.slice(max(0, first - passed), count - len(rows))
            rows += [list(row.values()) for row in part.to_pylist()]
        passed += batch.num_rows
        if len(rows) >= count:
            break
    return rows


def _cell(value: Any) -> str:
    return shorten("" if value is None else str(value), LONGEST_CELL)
