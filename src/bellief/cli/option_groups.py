"""Groups of options that the commands about logs share."""

import sys
from typing import Any, NamedTuple

import typer

import bellief
from bellief.cli import show
from bellief.cli.log_options import (
    Actions,
    Address,
    Belief,
    ColumnNames,
    Database,
    Engine,
    Labels,
    PriorName,
    Query,
    Report,
    RewardRange,
    RewardScale,
    Start,
    States,
    Support,
    Threads,
)
from bellief.cli.options import Json, Plot, Quiet
from bellief.errors import UserError


class Reading(NamedTuple):
    """How to read a log."""

    states: States = None
    actions: Actions = None
    labels: Labels = False
    columns: ColumnNames = None
    query: Query = None
    database: Database = None
    engine: Engine = "local"
    address: Address = None
    threads: Threads = None

    def log(self, data: str | None, progress: Any = None) -> Any:
        """Counts, or rows where states are vectors."""
        return self._read("as_log", data, **self._asdict(), progress=progress)

    def rows(self, data: str | None) -> Any:
        """Rows, for results that depend on their order."""
        if self.engine != "local":
            raise UserError("This command needs the rows in their order and reads them here: leave out --engine.")
        return self._read("as_transitions", data, **dict(zip(self._fields[:6], self, strict=False)))

    def tally(self, data: list[str], progress: Any) -> Any:
        """Counts of one or more files."""
        files = ["/dev/stdin" if path == "-" else path for path in data]
        return self._read("as_tally", files or None, **self._asdict(), progress=progress)

    def _read(self, name: str, data: Any, **options: Any) -> Any:
        """Read with a function of `bellief.logs`; unused columns and notes go to standard error."""
        from bellief import logs

        if data is None and self.query is None:
            raise UserError("Give the log as DATA (a file, a glob, a folder, minari:NAME), or a --query.")
        if data == "-":
            data = None if self.query is not None else "/dev/stdin"
        log = getattr(logs, name)(data, **options | {"labels": True if self.labels else None})
        for note in log.origin.notes:
            typer.echo(f"Note: {note}", err=True)
        if log.origin.unused:
            typer.echo(f"Note: these columns are not used: {logs.labels.few(log.origin.unused)}.", err=True)
        return log


class Assumptions(NamedTuple):
    """What is assumed about the MDP behind a log."""

    prior: PriorName = "logged"
    reward_scale: RewardScale = None
    start: Start = None
    belief: Belief = None
    support: Support = None
    reward_range: RewardRange = None

    def options(self) -> dict[str, Any]:
        """Arguments of the Python functions; `belief` has no effect."""
        return {name: value for name, value in self._asdict().items() if name != "belief"}


class Output(NamedTuple):
    """What becomes of an answer."""

    plot: Plot = None
    report: Report = None
    json: Json = False
    quiet: Quiet = False

    def write(self, result: Any) -> None:
        """Write the picture and the page of a result, where they were asked for."""
        if self.plot is not None:
            axes = result.comparison.plot() if not hasattr(result, "plot") else result.plot()
            show.write_picture(axes, self.plot)
        if self.report is not None:
            from bellief.report.offline_page import write_report

            write_report(result, self.report, "bellief " + " ".join(sys.argv[1:]), bellief.__version__)
