"""Tallies in files: a table that Bellief writes, and that a warehouse's SQL can write as well.

One row for each (state, action, next_state, terminated), with the columns `n`, `reward_mean`, `reward_squares` (sum of
squared deviations from the mean), `reward_low`, `reward_high`. A row whose action is null says in `n` how many
episodes began in its state.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bellief.errors import UserError
from bellief.files import write_whole
from bellief.logs.axes import Axis, Doubt, Sizes
from bellief.logs.engine import relation
from bellief.logs.fold import LARGEST_REWARD, Folding, Part, filled, flag_expression, key_expression, number_expression
from bellief.logs.labels import shown
from bellief.logs.origin import Origin
from bellief.logs.paths import LogFile
from bellief.logs.tally import Tally

if TYPE_CHECKING:
    import duckdb

KEYS = ("state", "action", "next_state", "terminated")
NUMBERS = ("n", "reward_mean", "reward_squares", "reward_low", "reward_high")


def is_tally(columns: Iterable[str]) -> bool:
    """Whether a table with these columns is a tally."""
    return {*KEYS, *NUMBERS} <= set(columns)


def save(tally: Tally, path: str | os.PathLike) -> Path:
    """Write a tally into a Parquet file, whole or not at all."""
    import pyarrow
    import pyarrow.parquet

    path = Path(path)
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise UserError(f"A tally is saved in a file that ends in .parquet, not '{shown(path.name)}'.")
    begun = np.flatnonzero(tally.start_count)
    gap = [None] * len(begun)

    def named(numbers: np.ndarray, labels: Sequence[str] | None) -> list:
        return [None if number < 0 else number if labels is None else labels[number] for number in numbers.tolist()]

    state = named(np.append(tally.cell_state, begun), tally.state_labels)
    columns = {
        "state": state,
        "action": named(tally.cell_action, tally.action_labels) + gap,
        "next_state": named(tally.cell_next, tally.state_labels) + gap,
        "terminated": tally.cell_terminated.tolist() + gap,
        "n": np.append(tally.cell_count, tally.start_count[begun]).tolist(),
    }
    moments = (tally.cell_mean, tally.cell_squares, tally.cell_low, tally.cell_high)
    columns |= {name: values.tolist() + gap for name, values in zip(NUMBERS[1:], moments, strict=True)}
    kinds = [
        pyarrow.int64() if labels is None else pyarrow.string() for labels in (tally.state_labels, tally.action_labels)
    ]
    types = [kinds[0], kinds[1], kinds[0], pyarrow.bool_(), pyarrow.int64(), *[pyarrow.float64()] * 4]
    table = pyarrow.table(columns, schema=pyarrow.schema(list(zip(columns, types, strict=True))))
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    try:
        return write_whole(path, sink.getvalue().to_pybytes())
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror or error}).") from None


def read_tallies(
    files: Sequence[LogFile],
    connection: "duckdb.DuckDBPyConnection",
    states: Sizes,
    actions: Sizes,
    labels: bool | None,
) -> Tally:
    """The sum of some tallies."""
    folding = Folding(Axis("state", states, labels), Axis("action", actions, labels))
    transitions = 0
    for number, file in enumerate(files):
        part, began, times = _read(file, connection)
        transitions += len(part.number)
        try:
            folding.add(part, number)
            folding.count_starts(folding.states.codes(began), times)
        except Doubt:
            raise UserError(
                f"{file.source}states and actions of a tally must be whole numbers from 0 (as many as were announced, "
                "at most), or all of them labels (labels=True, --labels)."
            ) from None
    if not transitions:
        raise UserError(f"{files[0].source}there are no transitions; at least one row is needed.")
    tally = folding.finish()
    object.__setattr__(tally, "origin", Origin(tuple(file.name for file in files if file.name)))
    return tally


def _read(file: LogFile, connection: "duckdb.DuckDBPyConnection") -> tuple[Part, np.ndarray, np.ndarray]:
    import duckdb

    try:
        source = relation(connection, file)
        column = dict(zip(source.names, zip(source.columns, source.types, strict=True), strict=True))
        selected = {name: key_expression(*column[name]) for name in KEYS[:3]}
        selected["terminated"] = f"coalesce({flag_expression(*column['terminated'], file.format == 'csv')}, false)"
        selected |= {name: f"coalesce({number_expression(*column[name])}, 'nan'::double)" for name in NUMBERS}
        selected["begins"] = f"coalesce(trim({column['action'][0]}::varchar), '') = ''"
        columns = ", ".join(f"{expression} as {name}" for name, expression in selected.items())
        found = connection.execute(f"select {columns} from {source.sql}").fetchnumpy()
    except Doubt:
        raise UserError(
            f"{file.source}a column of this tally has a type that no tally has; see the guide to logs."
        ) from None
    except (duckdb.Error, UnicodeError) as error:
        raise UserError(f"{file.name} is not a readable tally ({shown(str(error).splitlines()[0])}).") from None
    table = {name: filled(values) for name, values in found.items()}
    _check(table, file.source)
    cells = ~table["begins"].astype(bool)
    moments = [table[name][cells] for name in NUMBERS]
    keys = [table[name][cells] for name in KEYS[:3]]
    ended, none = table["terminated"][cells].astype(bool), np.zeros(int(cells.sum()), np.int64)
    part = Part(*keys, ended, moments[0].astype(np.int64), *moments[1:], none, None, None)  # type: ignore[call-arg]
    return part, table["state"][~cells], table["n"][~cells].astype(np.int64)


def _check(table: dict[str, np.ndarray], source: str) -> None:
    cells = ~table["begins"].astype(bool)
    number, mean, squares, low, high = (table[name] for name in NUMBERS)
    with np.errstate(invalid="ignore"):
        slack = 1e-9 * np.maximum(np.abs(low), np.abs(high))
        wrong = {
            "n": ~((number >= 1) & (number == np.floor(number)) & (number < 2.0**53)),
            "reward_mean": cells & ~((np.abs(mean) <= LARGEST_REWARD) & (mean >= low - slack) & (mean <= high + slack)),
            "reward_squares": cells & ~((squares >= 0) & (squares < np.inf)),
            "reward_low": cells & ~(np.abs(low) <= LARGEST_REWARD),
            "reward_high": cells & ~(np.abs(high) <= LARGEST_REWARD),
        }
    needs = {
        "n": "it must be a whole number of rows, at least 1",
        "reward_mean": "it must lie between reward_low and reward_high",
        "reward_squares": "it must be a sum of squares, not negative",
    }
    for name, bad in wrong.items():
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            need = needs.get(name, "it must be a finite number")
            raise UserError(f"{source}row {row + 1} has {name} '{table[name][row]:g}'; {need}.")
