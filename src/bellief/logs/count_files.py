"""Counts and rows of opened logs. DuckDB counts files; where a row needs a closer look, they are read row by row."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bellief.errors import UserError
from bellief.logs.axes import Axis, Doubt, Sizes
from bellief.logs.columns import Taken, take
from bellief.logs.feature_columns import refuse_features
from bellief.logs.fold import Folding, Unit, units
from bellief.logs.opened_files import Files
from bellief.logs.origin import origin_from
from bellief.logs.pool import fold_units
from bellief.logs.tally import Tally
from bellief.logs.tally_files import is_tally, read_tallies

if TYPE_CHECKING:
    from bellief.logs.sources import TableLog
    from bellief.logs.transitions import Transitions


class Reading(NamedTuple):
    """How to read: sizes or labels of states and actions, columns for some roles, and where the work is done."""

    states: Sizes = None
    actions: Sizes = None
    labels: bool | None = None
    columns: Mapping[str, str] | None = None
    engine: str = "local"
    address: str | None = None
    threads: int | None = None
    progress: Callable[[float], None] | None = None


def has_features(found: "Files | TableLog", reading: Reading) -> bool:
    """Whether states are vectors, decided by the first table."""
    if not isinstance(found, Files):
        return bool(found.taken.features)
    names = found.columns[0]
    return not is_tally(names) and bool(take(names, reading.columns, found.files[0].source).features)


def rows_of(found: "Files | TableLog", reading: Reading) -> "Transitions":
    """All rows."""
    from bellief.logs import validate

    if not isinstance(found, Files):
        return validate.rows_of([found], *reading[:3])
    for file, names in zip(found.files, found.columns, strict=True):
        if is_tally(names):
            raise UserError(f"{file.source}a tally keeps no rows, and this needs their order: give the log itself.")
    return validate.rows_of(validate.tables_of(found.files, reading.columns), *reading[:3])


def tally_of(found: "Files | TableLog", reading: Reading) -> Tally:
    """Counts of logs, or the sum of tallies."""
    if not isinstance(found, Files):
        from bellief.logs import validate

        return validate.tally_of([found], *reading[:3])
    files, columns = found.files, found.columns
    tallies = [is_tally(names) for names in columns]
    if all(tallies):
        return read_tallies(files, found.connection, *reading[:3])
    if any(tallies):
        file = files[tallies.index(True)]
        raise UserError(f"{file.source}this is a tally, and other files here are logs: make a tally of those first.")
    taken = [take(names, reading.columns, file.source) for names, file in zip(columns, files, strict=True)]
    for file, one in zip(files, taken, strict=True):
        refuse_features(one.features, file.source)
    origin = origin_from([file.name for file in files if file.name], taken)
    return dataclasses.replace(_fold(found, taken, reading), origin=origin)


def _fold(found: Files, taken: Sequence[Taken], reading: Reading) -> Tally:
    """Aggregated by DuckDB; where a row needs a closer look, read row by row."""
    import duckdb

    folding = Folding(Axis("state", reading.states, reading.labels), Axis("action", reading.actions, reading.labels))
    work: list[Unit] = []
    try:
        for file, one in zip(found.files, taken, strict=True):
            work += units(found.connection, file, one)
        for number, part in enumerate(fold_units(work, found.connection, found.scratch, *reading[4:7])):
            folding.add(part, number)
            if reading.progress is not None:
                reading.progress((number + 1) / len(work))
        if folding.held:
            return folding.finish()
        is_doubtful = False
    except (Doubt, duckdb.Error):
        is_doubtful = len(work) > 1 and folding.parts < len(work)
    from bellief.logs import validate

    if is_doubtful:
        # The first unit that is not accounted for: most often its rows show what is wrong.
        validate.examine(work[folding.parts], folding, *reading[:4])
    return validate.tally_of(validate.tables_of(found.files, reading.columns), *reading[:3])
