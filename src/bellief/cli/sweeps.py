"""`bellief sweep`, `bellief resume` and `bellief store`."""

import contextlib
import errno
import importlib.util
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bellief.cli import failures, options, show
from bellief.cli.failures import INTERRUPTED, TERMINATED, Unfinished
from bellief.cli.options import between, whole
from bellief.errors import UserError

ENGINES = ("local", "ray", "batch")

Json = Annotated[bool, typer.Option("--json", help="Print JSON events, one a line, on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False, help="The sweep's folder.")]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Where to compute: local, ray, or batch (one process, all runs at once: for a GPU).",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Ray cluster: auto, or HOST:PORT; without it, Ray on this machine."),
]
Workers = Annotated[
    int | None,
    typer.Option(parser=whole("--workers", 1, 4096), metavar="N", help="Processes; without it one for each core."),
]
Shard = Annotated[
    str | None, typer.Option(metavar="I/N", help="Compute part I of N only; the parts may run at the same time.")
]
Every = Annotated[
    float,
    typer.Option(
        "--checkpoint-every",
        parser=between("--checkpoint-every", -1e-9, float("inf")),
        metavar="SECONDS",
        help="Seconds between two checkpoints of a cell.",
    ),
]
Board = Annotated[bool, typer.Option("--tensorboard", help="Write rewards for TensorBoard into FOLDER/tensorboard.")]

store_app = typer.Typer(help="Inspect a sweep's folder: ls, verify, export.")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(sweep)
    app.command()(resume)
    app.add_typer(store_app, name="store")


def sweep(
    spec: Annotated[str, typer.Argument(metavar="FILE", show_default=False, help="YAML file that describes it.")],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a line of the file: steps=1000, agents.psrl.runs=5; repeatable.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sweep's own folder.")] = Path("runs"),
    reuse: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Reuse finished cells of another sweep's folder; repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cells, with time and memory from a short trial; write nothing.")
    ] = False,
    shard: Shard = None,
    engine: EngineName = "local",
    address: Address = None,
    workers: Workers = None,
    every: Every = 30.0,
    tensorboard: Board = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run every agent in every environment of a sweep; results go into a folder, and an interrupted sweep resumes."""
    check_engine(engine, address)
    from bellief.sweeps.ledger import read_shard
    from bellief.sweeps.spec import load_spec

    part = None if shard is None else read_shard(shard)
    described = load_spec(spec, changes)
    folder = out / described.name
    if dry_run:
        from bellief.sweeps.plan import dry_run as estimate

        document = estimate(described, folder, workers)
        if json:
            show.print_json(document)
        else:
            _print_estimate(document)
        return
    compute_sweeps(
        [(described, folder, reuse or [])], folder, part, engine, address, workers, every, tensorboard, json, quiet
    )


def resume(
    folder: Folder,
    shard: Shard = None,
    engine: EngineName = "local",
    address: Address = None,
    workers: Workers = None,
    every: Every = 30.0,
    tensorboard: Board = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finish an interrupted sweep: finished cells are checked and kept, missing ones are computed."""
    check_engine(engine, address)
    from bellief.sweeps.ledger import read_shard
    from bellief.sweeps.store import Store

    part = None if shard is None else read_shard(shard)
    compute_sweeps(
        [(Store(folder).spec, folder, [])], folder, part, engine, address, workers, every, tensorboard, json, quiet
    )


def check_engine(engine: str, address: str | None) -> None:
    """Refuse an engine that is not installed before anything slow happens."""
    if engine not in ENGINES:
        raise UserError(f"There is no engine called '{engine}'; choose local, ray or batch.")
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        raise UserError("The ray engine needs Ray: install it with pip install 'bellief[ray]'.")
    if address is not None and engine != "ray":
        raise UserError("--address is for the ray engine; add --engine ray, or leave it out.")


def compute_sweeps(
    wanted: Sequence[tuple[Any, Path, Sequence[Path]]],
    folder: Path,
    shard: tuple[int, int] | None,
    engine: str,
    address: str | None,
    workers: int | None,
    every: float,
    tensorboard: bool,
    json: bool,
    quiet: bool,
    again: str | None = None,
    conclude: bool = True,
) -> None:
    """Compute sweeps (spec, folder, folders to take cells from) and show how it goes. `folder` is where all of them
    are, `again` says how to continue when they end too early.
    """
    from bellief.cli.sweep_progress import show_sweep
    from bellief.sweeps.sweep import Wanted, run_sweeps

    again = again or f"'bellief resume {folder}'"
    with contextlib.ExitStack() as stack:
        tell = stack.enter_context(show_sweep(json, quiet, folder / "tensorboard" if tensorboard else None))
        if engine == "ray":  # which prints on standard output, whatever it is told
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        try:
            summaries = run_sweeps(
                [Wanted(*one) for one in wanted],
                engine=lambda: _engine(engine, address, workers),
                shard=shard,
                every=every,
                listen=tell,
            )
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            begun = (folder / "config.yaml").exists()
            raise Unfinished(
                f"The disk of {folder} is full ({error.strerror}: {error.filename}); what was finished is safe: make "
                f"room, then continue with {again if begun else 'the same command'}.",
                1,
            ) from error
    cells, finished = (sum(getattr(one, name) for one in summaries) for name in ("cells", "finished"))
    if any(one.stopped for one in summaries):
        how, code = ("Terminated", TERMINATED) if summaries[0].signal == signal.SIGTERM else ("Stopped", INTERRUPTED)
        raise Unfinished(f"{how} with {finished} of {cells} cells finished; continue with {again}.", code)
    if failed := {cell: reason for one in summaries for cell, reason in one.failed.items()}:
        cell, reason = next(iter(failed.items()))
        raise Unfinished(
            f"{len(failed)} of {cells} cells failed, the first, {cell}, because: {reason.rstrip('.')}; "
            f"try them again with {again}.",
            1,
        )
    if conclude and not json:
        part = "" if shard is None else f" of part {shard[0]}/{shard[1]}"
        computed = sum(one.computed for one in summaries)
        show.print_lines(f"{finished} cells{part} finished, {computed} of them now: {folder}")


def _engine(name: str, address: str | None, workers: int | None) -> Any:
    if name == "ray":
        from bellief.sweeps.engines.ray import Ray

        return Ray(address, workers)
    if name == "batch":
        from bellief.sweeps.engines.batch import Batch

        return Batch()
    from bellief.sweeps.engines.local import Local

    return Local(workers, debug=failures.debugging)


def _print_estimate(document: dict[str, Any]) -> None:
    table = show.make_table("environment", "agent", "steps", "runs", "cells", "missing", "seconds a cell")
    table.columns[1].justify = "left"
    for row in document["conditions"]:
        numbers = (row["steps"], row["runs"], row["cells"], row["missing"], row["seconds_per_cell"])
        table.add_row(row["environment"], row["agent"], *map(str, numbers))
    show.print_table(table)
    hours, rest = divmod(round(document["seconds"]), 3600)
    show.print_lines(
        f"{document['missing']} of {document['cells']} cells to compute with {document['workers']} processes: about "
        f"{hours} h {rest // 60} min {rest % 60} s and {document['memory_mib'] / 1024:.1f} GiB of memory",
        f"Nothing was written; without --dry-run the results go to {document['folder']}",
    )


@store_app.callback(invoke_without_command=True)
def _store(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


@store_app.command(name="ls")
def store_ls(folder: Folder, json: options.Json = False) -> None:
    """List what the folder holds, by environment and agent."""
    from bellief.sweeps.store_reader import open_store

    document = open_store(folder).to_dict()
    if json:
        show.print_json(document)
        return
    table = show.make_table("environment", "agent", "steps", "runs", "cells finished", "others")
    table.columns[1].justify = "left"
    for row in document["conditions"]:
        others = ", ".join(f"{row[name]} {name}" for name in ("started", "damaged", "pending") if row[name])
        finished = f"{row['finished']} of {row['cells']}"
        table.add_row(row["environment"], row["agent"], str(row["steps"]), str(row["runs"]), finished, others)
    show.print_table(table)
    show.print_lines(f"{document['finished']} of {document['cells']} cells finished")


@store_app.command(name="verify")
def store_verify(
    folder: Folder,
    recompute: Annotated[
        int, typer.Option(parser=whole("--recompute"), metavar="N", help="Finished cells to compute again, at random.")
    ] = 1,
    seed: Annotated[
        int | None,
        typer.Option(parser=whole("--seed"), metavar="N", help="Seed of that choice; by default a new one each time."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Find missing files, compare every file with its hash, and compute a random cell again to compare it."""
    from bellief.sweeps.store_reader import open_store
    from bellief.sweeps.verify import verify

    report = verify(open_store(folder), recompute, seed)
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


@store_app.command(name="export")
def store_export(
    folder: Folder,
    to: Annotated[Path, typer.Option(metavar="FILE", help="A .csv or .parquet file (replaced if it exists).")],
    json: options.Json = False,
) -> None:
    """Write all curves into one file: environment, agent, run, step, total, smoothed."""
    from bellief.sweeps.store_reader import open_store

    found = open_store(folder)
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


@store_app.command(name="schema")
def store_schema() -> None:
    """Print the JSON Schema of a sweep file, for editors that check YAML."""
    from bellief.sweeps.spec import json_schema

    show.print_json(json_schema())
