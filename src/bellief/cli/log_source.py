"""The log of a command: what was given as DATA, and the options that say how to read it."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from bellief.cli.log_options import (
    Actions,
    Address,
    ColumnNames,
    Data,
    Database,
    Engine,
    Labels,
    Query,
    States,
    Threads,
    read_log,
    read_rows,
)
from bellief.errors import UserError


class LogSource(NamedTuple):
    """How to read the log of a command."""

    data: Data = None
    states: States = None
    actions: Actions = None
    labels: Labels = False
    columns: ColumnNames = None
    query: Query = None
    database: Database = None
    engine: Engine = "local"
    address: Address = None
    threads: Threads = None

    def _options(self) -> tuple[str | None, dict[str, Any]]:
        data, *rest = self
        if data is None and self.query is None:
            raise UserError("Give the log as DATA (a file, a glob, a folder, minari:NAME), or a --query.")
        if data == "-":
            data = None if self.query is not None else "/dev/stdin"
        options = dict(zip(self._fields[1:], rest, strict=True))
        return data, options | {"labels": True if self.labels else None}

    def log(self, progress: Callable[[float], None] | None = None) -> Any:
        """Counts, or rows where states are vectors."""
        data, options = self._options()
        return read_log(data, progress=progress, **options)

    def rows(self) -> Any:
        """Rows, for what needs their order."""
        if self.engine != "local":
            raise UserError("This command needs the rows in their order and reads them here: leave out --engine.")
        data, options = self._options()
        kept = {name: value for name, value in options.items() if name not in ("engine", "address", "threads")}
        return read_rows(data, **kept)


def takes_log(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, whose first parameter is a `LogSource`, the argument and the options that make one."""
    own = list(inspect.signature(command).parameters.values())[1:]
    fields = LogSource.__annotations__
    source = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=LogSource._field_defaults[name], annotation=fields[name]
        )
        for name in LogSource._fields
    ]
    # DATA comes first, then the command's own arguments and options, then how to read.
    parameters = [source[0], *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *source[1:]]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        command(LogSource(**{name: given.pop(name) for name in LogSource._fields}), **given)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {one.name: one.annotation for one in parameters}
    return wrapper
