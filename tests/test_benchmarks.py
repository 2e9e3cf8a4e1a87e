"""The benchmarks' own arithmetic."""

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

HISTORY = Path(__file__).parents[1] / "benchmarks" / "history.py"


@pytest.fixture(scope="module")
def history():
    if not HISTORY.exists():
        pytest.skip("the benchmarks are not part of this installation")
    spec = importlib.util.spec_from_file_location("history", HISTORY)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(ours, peer):
    return {"median_seconds": {"psrl 10": {"Bellief": ours, "NumPy": peer}}}


def test_a_slower_machine_is_no_regression_and_a_slower_program_is(history):
    assert history.regressions([line(1.0, 10.0), line(3.0, 30.0)], 1.5) == []
    assert history.regressions([line(1.0, 10.0), line(2.0, 10.0)], 1.5) == ["psrl 10: Bellief: 2.00 times what it was"]
    assert history.regressions([line(1.0, 10.0)], 1.5) == []


@pytest.fixture(scope="module")
def soak():
    """The soak of random commands, whose judgement must find each kind of defect."""
    folder = HISTORY.parent
    if not (folder / "soak_commands.py").exists():
        pytest.skip("the benchmarks are not part of this installation")
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("soak_commands")
    finally:
        sys.path.remove(str(folder))


HARMS = {
    "none": (0, '{"a": 1}', "", {}, None),
    "none, refused": (2, "", "log.csv is empty.", {}, None),
    "killed": (-9, "", "", {}, None),
    "exit code": (3, "", "It failed.", {}, "exit code 3"),
    "a hang": (None, "", "", {}, "over its limit"),
    "a traceback": (2, "", "Traceback (most recent call last):\nIt failed.", {}, "a bug"),
    "a bug": (1, "", "This is a bug in Bellief (TypeError).", {}, "a bug"),
    "no sentence": (2, "", "oh", {}, "no sentence"),
    "not JSON": (0, '{"a": NaN}', "", {}, "JSON"),
    "a file left": (0, "{}", "", {"left.tmp": "x"}, "left left.tmp"),
    "an input changed": (0, "{}", "", {"data.csv": "changed"}, "changed or removed data.csv"),
    "half an output": (0, "{}", "", {"out.html": "<html>"}, "half-written out.html"),
    "an output of a failure": (2, "", "It failed.", {"out.html": "<html></html>"}, "failed, and wrote out.html"),
    "an output": (0, "{}", "", {"out.html": "<html></html>"}, None),
}


@pytest.mark.parametrize("harm", HARMS)
def test_the_soak_finds_every_harm(soak, tmp_path, harm):
    code, out, err, files, expected = HARMS[harm]
    for name, text in {"data.csv": "as it was", "stdout": out, "stderr": err}.items():
        (tmp_path / name).write_text(text)
    before = soak.contents(tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = soak.Command(["evaluate", "--json"], outputs=[tmp_path / "out.html"])
    found = soak.judge(command, code, tmp_path, before, soak.contents(tmp_path))
    assert (found == []) if expected is None else any(expected in one for one in found), found


def test_a_command_of_the_soak_can_be_made_again(soak, tmp_path):
    made = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        command, alone, killed = soak.make_command(7, 3, tmp_path / place, tmp_path)
        arguments = [one.replace(str(tmp_path / place), "") for one in command.arguments]
        made.append((arguments, alone, killed, soak.contents(tmp_path / place)))
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("name", "options", "keys"),
    [
        ("fold.py", ["--rows", "1000", "--rounds", "1"], ["episodes", "ratio", "cpu_ratio", "bellief_mb"]),
        pytest.param(
            "log_commands.py", ["--tiny", "--rounds", "1", "--only", "warm"], ["what", "seconds"],
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_figures_about_logs_are_printed_and_written(tmp_path, name, options, keys):
    script = HISTORY.parent / name
    if not script.exists():
        pytest.skip("the benchmarks are not part of this installation")
    out = tmp_path / "found.json"
    command = [sys.executable, str(script), *options, "--out", str(out)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    written = json.loads(out.read_text())
    written = written if isinstance(written, list) else written["rows"]
    assert [json.loads(line) for line in told] == written
    assert set(keys) <= written[0].keys()
