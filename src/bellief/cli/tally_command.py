"""The command tally: logs into counts, and counts into one."""

from pathlib import Path
from typing import Annotated

import typer

from bellief.cli import show
from bellief.cli.option_groups import Reading
from bellief.cli.options import Json, Quiet, grouped
from bellief.cli.progress import progress


@grouped
def tally(
    *,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...",
            show_default=False,
            help="Files (CSV, Parquet, JSON lines; .gz, .zst), globs, folders, minari:NAME, - for standard input; or "
            "files of tallies.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the counts into a .parquet file (replaced if it exists).")
    ] = None,
    reading: Reading,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count the transitions and rewards of a log. Every command accepts the file instead of the log."""
    with progress("Counting", quiet) as tell:
        counts = reading.tally(data or [], tell)
        if out is not None:
            counts.save(out)
    document = {
        "transitions": len(counts),
        "episodes": counts.episodes,
        "ends": counts.ends,
        "states": counts.states,
        "actions": counts.actions,
        "pairs": len(counts.pair_count),
        "cells": len(counts.cell_count),
        "reward_low": counts.reward_low,
        "reward_high": counts.reward_high,
        "columns": counts.origin.columns,
        "unused_columns": list(counts.origin.unused),
    }
    if json:
        show.print_json(document)
        return
    show.print_lines(
        f"{len(counts)} transitions in {counts.episodes} episodes, of which {counts.ends} ended; {counts.states} "
        f"states, {counts.actions} actions, {len(counts.cell_count)} different outcomes of {len(counts.pair_count)} "
        f"pairs; rewards from {counts.reward_low:g} to {counts.reward_high:g}"
    )
    if out is not None:
        show.print_lines(f"Saved in {out}")
