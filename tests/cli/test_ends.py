"""How the program begins and ends: fast help, versions, interrupts, closed pipes, full disks, bugs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bellief
from cli.conftest import RUN, assert_one_sentence

SOURCE = Path(bellief.__file__).parents[1]
SLOW_IMPORTS = ("jax", "matplotlib", "pandas", "pyarrow", "ray", "scipy", "yaml")


def start(*arguments, stdout=subprocess.PIPE, unbuffered=""):
    """A true process, for what only a process shows."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "COLUMNS": "100", "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, *arguments]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize("arguments", [["--help"], ["evaluate", "--help"], ["sweep", "--help"], ["list", "envs"]])
def test_what_needs_no_numbers_imports_nothing_slow(arguments):
    program = f"""
import sys
from bellief.cli import main
code = main({arguments!r})
print([name for name in {SLOW_IMPORTS!r} if name in sys.modules], code)
"""
    finished = start("-c", program)
    assert finished.stdout.splitlines()[-1] == "[] 0"
    assert finished.stderr == ""


def test_module_can_be_run():
    finished = start("-m", "bellief", "--version")
    assert finished.returncode == 0
    assert finished.stdout == f"bellief {bellief.__version__}\n"


def test_exit_code_reaches_the_shell():
    finished = start("-m", "bellief", "run", "--env", "nchain", "--runs", "0")
    assert finished.returncode == 2
    assert finished.stderr == "--runs must be at least 1, not 0.\n"


# Where the output is buffered the failure shows at the end, else in the middle of a command.
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["list", "list --json", "--help"])
def test_closed_pipe_leaves_no_traceback(arguments, unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    finished = start("-m", "bellief", *arguments.split(), stdout=writing, unbuffered=unbuffered)
    os.close(writing)
    assert finished.stderr == ""
    assert finished.returncode == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["list", "list --json"])
def test_full_disk_behind_standard_output(arguments, unbuffered):
    with open("/dev/full", "w") as full:
        finished = start("-m", "bellief", *arguments.split(), stdout=full, unbuffered=unbuffered)
    assert finished.returncode == 1
    assert finished.stderr.count("\n") == 1
    assert "No space left" in finished.stderr


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["--debug"]])
def test_without_a_command_there_is_help(call, arguments):
    result = call(*arguments)
    assert result.code == 0
    assert result.err == ""
    for command in ("evaluate", "run", "list", "demo", "--version", "--debug"):
        assert command in result.out


def test_help_names_every_choice(call):
    from bellief.beliefs.tabular import PRIORS
    from bellief.induction.evaluate import FINALS
    from bellief.registry import METHODS

    shown = call("evaluate", "--help").out
    for name in (*METHODS, *PRIORS, *FINALS, "uniform", "behaviour"):
        assert name in shown


def failing(error):
    def fail(*arguments, **options):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "fragments"),
    [
        (RuntimeError("two\nlines"), 1, ["bug in Bellief", "RuntimeError: two lines", "--debug"]),
        (KeyError("state"), 1, ["bug in Bellief", "KeyError"]),
        (AssertionError(), 1, ["bug in Bellief (AssertionError)"]),
        (MemoryError(), 1, ["not enough memory"]),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), 1, ["not enough memory"]),
        (OSError(28, "No space left on device", "big.csv"), 1, ["big.csv", "No space left on device"]),
        (PermissionError(13, "Permission denied", "locked.csv"), 2, ["locked.csv", "Permission denied"]),
        (KeyboardInterrupt(), 130, ["Interrupted."]),
    ],
)
def test_failures(call, data, monkeypatch, error, code, fragments):
    monkeypatch.setattr("bellief.evaluation.policy_value.evaluate", failing(error))
    assert_one_sentence(call("evaluate", data), *fragments, code=code)


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_the_traceback(call, tmp_path, place):
    command = ["evaluate", tmp_path / "none.csv"]
    result = call(*(["--debug", *command] if place == "before" else [*command, "--debug"]))
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" in result.err
    assert result.err.endswith("give the path of a CSV file.\n")


def test_python_warnings_do_not_reach_the_user(call, data, monkeypatch):
    import warnings

    from bellief.evaluation import evaluate

    def warn(*arguments, **options):
        warnings.warn("the user cannot do anything about this", stacklevel=1)
        return evaluate(*arguments, **options)

    monkeypatch.setattr("bellief.evaluation.policy_value.evaluate", warn)
    result = call("evaluate", data, "--method", "mean-mdp")
    assert result.code == 0
    assert result.err == ""


def test_list(call):
    import json

    from bellief.registry import AGENTS, ENVIRONMENTS, VALUES

    for kind, entries in (("envs", ENVIRONMENTS), ("agents", AGENTS), ("values", VALUES)):
        assert [entry["name"] for entry in json.loads(call("list", kind, "--json").out)] == list(entries)
        shown = call("list", kind).out
        assert all(name in shown for name in entries)
    assert list(json.loads(call("list", "--json").out)) == ["envs", "agents", "values"]


def test_demo_prints_the_path_of_its_page(call, tmp_path, monkeypatch):
    import bellief.demo

    calls = []

    def run_demo(out, quick, seed, echo):
        calls.append((out, quick, seed))
        echo("part one")
        return out / "index.html"

    monkeypatch.setattr(bellief.demo, "run_demo", run_demo)
    result = call("demo", "--out", tmp_path / "page", "--quick", "--seed", "3")
    assert (result.code, result.out) == (0, f"{tmp_path / 'page' / 'index.html'}\n")
    assert result.err == "part one\n"
    assert calls == [(tmp_path / "page", True, 3)]
    assert call("demo", "--quiet").err == ""


class Terminal:
    """A stand-in for a terminal that remembers what was written to it."""

    encoding = "utf-8"

    def __init__(self):
        self.written = ""

    def write(self, text):
        self.written += text
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return True

    def fileno(self):
        raise OSError


@pytest.mark.parametrize(("quiet", "patience", "shown"), [(False, 0.0, True), (False, 60.0, False), (True, 0.0, False)])
def test_progress_bar(capsys, monkeypatch, quiet, patience, shown):
    import time

    from bellief.cli import progress

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    with progress.progress("learning", quiet) as report:
        until = time.monotonic() + (60 if shown else 0.3)
        while "learning" not in terminal.written and time.monotonic() < until:
            time.sleep(0.01)
        report(0.5)
        while "50%" not in terminal.written and time.monotonic() < until:
            time.sleep(0.01)
    assert ("learning" in terminal.written) == shown
    assert ("50%" in terminal.written) == shown
    assert capsys.readouterr().out == ""


def test_no_progress_bar_where_nobody_looks(call, monkeypatch):
    monkeypatch.setattr("bellief.cli.progress.PATIENCE", 0.0)
    result = call(*RUN, "--runs", "1")
    assert result.code == 0
    assert result.err == ""
