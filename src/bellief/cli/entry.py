"""Entry point of the program: `main` runs a command and returns the exit code."""

import contextlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from bellief.cli import failures, jax_setup
from bellief.errors import Notice
from bellief.fast.compiler_options import set_process_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 the user's mistake, 130 interrupted, 143 terminated."""
    if sys.stdout is None:  # started with its standard output closed
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Removed here so that it is accepted anywhere, also after a command's own options.
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    failures.debugging = debug
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.simplefilter("ignore")
            warnings.simplefilter("always", Notice)
            warnings.showwarning = _show_warning
            given, device = jax_setup.take_device(given)
            set_process_options()
            jax_setup.use_device(device)
            if arguments is None:
                signal.signal(signal.SIGTERM, _terminate)
                jax_setup.keep_compiled_programs()
            code = _invoke(given)
    except SystemExit as stop:  # a closed pipe, noticed by typer or rich
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException as error:
        if debug:
            traceback.print_exc()
        sentence, code = failures.describe(error)
        _complain(sentence)
    return _flush(code)


_show_python_warning = warnings.showwarning


def _show_warning(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
    """A notice as a plain sentence; other warnings, which only `--debug` lets through, as Python shows them."""
    if issubclass(category, Notice):
        _complain(f"Note: {message}")
    else:
        _show_python_warning(message, category, *place, **more)


def _terminate(number: int, frame: Any) -> None:
    """Half-written files are removed on exit, as after an interrupt."""
    del number, frame
    raise failures.Terminated


def _invoke(arguments: list[str]) -> int:
    import typer.main

    from bellief.cli.app import app

    code = typer.main.get_command(app).main(args=arguments, prog_name="bellief", standalone_mode=False)
    if code == failures.INTERRUPTED:  # typer turns an interrupt into a number
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _complain(sentence: str) -> None:
    try:
        print(sentence, file=sys.stderr, flush=True)
    except OSError:  # standard error is closed
        _silence(sys.stderr)


def _flush(code: int) -> int:
    """Flush now, so that an error in writing the output is reported before the interpreter shuts down."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        return code or 1
    except OSError as error:
        _silence(sys.stdout)
        if code == 0:  # otherwise an error was printed already
            _complain(f"Standard output cannot be written ({error.strerror or error}).")
        return code or 1
    return code


def _silence(stream) -> None:
    """Discard what is left in the stream; the interpreter would otherwise try to write it again at exit."""
    with contextlib.suppress(OSError):  # not a real file: nothing is flushed at the end either
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
