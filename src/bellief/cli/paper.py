"""`bellief paper`."""

from pathlib import Path
from typing import Annotated

import typer

from bellief.cli import show
from bellief.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(paper)


def paper(
    scale: Annotated[str, typer.Option(metavar="NAME", help="tiny, quick, standard or full.")] = "quick",
    only: Annotated[str | None, typer.Option(metavar="SWEEPS", help="")] = None,
    write_spec: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the sweeps' YAML files for 'bellief sweep', and compute nothing."),
    ] = None,
) -> None:
    """Regenerate the paper's figures and tables, and say what was reproduced."""
    from bellief.files import write_whole
    from bellief.paper.tasks import SCALES, TASKS, sweep_spec

    if scale not in SCALES:
        raise UserError(f"There is no scale '{scale}'; choose one of {', '.join(SCALES)}.")
    if write_spec is None:
        raise UserError("Give --write-spec.")
    write_spec.mkdir(parents=True, exist_ok=True)
    for name in TASKS if only is None else only.split(","):
        path = write_spec / f"{name}.yaml"
        write_whole(path, sweep_spec(name, scale).to_yaml().encode())
        show.print_lines(str(path))
