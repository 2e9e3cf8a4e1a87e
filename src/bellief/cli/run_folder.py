"""The folder of `bellief run --out`: reserved at the start, with checkpoints until the results are in it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bellief.cli import show
from bellief.cli.failures import Terminated, Unfinished, describe

if TYPE_CHECKING:
    from bellief.experiments.results import RunResult
    from bellief.sweeps.unfinished_run import UnfinishedRun


@contextlib.contextmanager
def unfinished_run(out: Path | None, arguments: dict[str, Any], quiet: bool) -> "Iterator[UnfinishedRun | None]":
    """Hold the folder while the block runs; an interrupt then says how to resume. Does nothing without a folder."""
    if out is None:
        yield None
        return
    from bellief.sweeps.unfinished_run import reserve

    with reserve(out, dict(arguments)) as unfinished:
        if unfinished.begun() and not quiet:
            typer.echo(f"Continuing the unfinished run in {out}", err=True)
        try:
            yield unfinished
        except (KeyboardInterrupt, Terminated) as error:
            if not unfinished.begun():
                raise
            sentence, code = describe(error)
            text = (
                f"{sentence.rstrip('.')}; the runs are saved in {out} as far as they are: repeat the command to go on."
            )
            raise Unfinished(text, code) from error


def save_run(result: "RunResult", out: Path) -> None:
    """Replace the checkpoints by the results."""
    from bellief.sweeps.unfinished_run import finish

    def save(folder: Path) -> None:
        result.save(folder)
        show.write_picture(result.plot(), folder / "curve.png")

    finish(out, save)
