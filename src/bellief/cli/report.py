"""`bellief report`: a page of a sweep."""

from pathlib import Path
from typing import Annotated

import typer

from bellief.cli import show
from bellief.cli.options import Json, page
from bellief.cli.sweeps import Folder


def report(
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=page("--out"),
            metavar="FILE",
            help="An .html file (replaced if it exists); without it, report.html in the folder.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make one HTML page of a sweep, with interactive curves; it needs no network."""
    from bellief.report.sweep_page import write_sweep_report

    path, state = write_sweep_report(folder, out)
    if json:
        show.print_json({"file": str(path), "cells": state["cells"], "finished": state["finished"]})
        return
    missing = state["cells"] - state["finished"]
    rest = (
        f"; {missing} of {state['cells']} cells are missing, continue with 'bellief resume {folder}'" if missing else ""
    )
    show.print_lines(f"Open {path}{rest}")
