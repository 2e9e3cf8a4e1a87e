"""`bellief store`: look at a sweep's folder."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bellief import sweeps
from bellief.cli import show
from bellief.cli.failures import Unfinished
from bellief.cli.options import Json, whole
from bellief.cli.sweeps import Folder

app = typer.Typer(help="Inspect a sweep's folder: ls, verify, export.")


@app.callback(invoke_without_command=True)
def _store(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


@app.command(name="ls")
def ls(folder: Folder, json: Json = False) -> None:
    """List what the folder holds, by environment and agent."""
    document = sweeps.open_store(folder).to_dict()
    if json:
        show.print_json(document)
        return
    table = show.make_table("environment", "agent", "steps", "runs", "cells finished", "others", left=2)
    for row in document["conditions"]:
        others = ", ".join(f"{row[name]} {name}" for name in ("started", "damaged", "pending") if row[name])
        finished = f"{row['finished']} of {row['cells']}"
        table.add_row(row["environment"], row["agent"], str(row["steps"]), str(row["runs"]), finished, others)
    show.print_table(table)
    show.print_lines(f"{document['finished']} of {document['cells']} cells finished")


@app.command(name="verify")
def verify(
    folder: Folder,
    recompute: Annotated[
        int, typer.Option(parser=whole("--recompute"), metavar="N", help="Finished cells to compute again, at random.")
    ] = 1,
    seed: Annotated[
        int | None,
        typer.Option(parser=whole("--seed"), metavar="N", help="Seed of that choice; by default a new one each time."),
    ] = None,
    json: Json = False,
) -> None:
    """Find missing files, compare every file with its hash, and compute a random cell again to compare it."""
    from bellief.sweeps.verify import verify as verify_store

    report = verify_store(sweeps.open_store(folder), recompute, seed)
    if json:
        show.print_json(report)
    else:
        again = (f"cell {one['cell']} computed again: {one['found']} ({one['test']})" for one in report["recomputed"])
        show.print_lines(f"{report['checked']} finished cells are what was written", *again, *report["notes"])
    if report["problems"]:
        first, number = report["problems"][0], len(report["problems"])
        count = "a problem" if number == 1 else f"{number} problems, the first"
        advice = f"'bellief resume {folder}' sets damaged cells aside and computes what is missing"
        if first["what"] == "config.yaml":
            advice = f"put the earlier one back, or compute what it asks for now with 'bellief resume {folder}'"
        raise Unfinished(
            f"{folder} has {count}: {first['what']}: {first['problem']}; {advice}.",
            1,
        )


@app.command(name="export")
def export(
    folder: Folder,
    to: Annotated[Path, typer.Option(metavar="FILE", help="A .csv or .parquet file (replaced if it exists).")],
    json: Json = False,
) -> None:
    """Write all curves into one file: environment, agent, run, step, total, smoothed."""
    found = sweeps.open_store(folder)
    rows = found.export(to)
    state = found.to_dict()
    if missing := state["cells"] - state["finished"]:
        print(
            f"Note: {missing} of {state['cells']} cells are damaged or not finished, and are left out; 'bellief resume "
            f"{folder}' computes them.",
            file=sys.stderr,
        )
    if json:
        show.print_json({"file": str(to), "rows": rows})
    else:
        show.print_lines(f"{rows} rows in {to}")


@app.command(name="schema")
def schema() -> None:
    """Print the JSON Schema of a sweep file, for editors that check YAML."""
    from bellief.sweeps.spec import json_schema

    show.print_json(json_schema())
