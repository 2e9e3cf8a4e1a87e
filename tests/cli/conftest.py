"""The command line called inside the test's own process: JAX is imported and compiled once, not for every test."""

from types import SimpleNamespace

import pytest

from bellief.cli import main

HEADER = "state,action,reward,next_state\n"
ROWS = "0,0,1.0,1\n1,1,0.5,0\n0,1,2.0,0\n1,0,-1.0,1\n"

# Small, and the same in every test, so that one compilation serves all of them.
RUN = (
    "run",
    "--env",
    "nchain",
    "--agent",
    "bbi-paper",
    "--steps",
    "30",
    "--set",
    "mdps=2",
    "--set",
    "horizon=3",
    "--set",
    "rule=optimistic",
)


@pytest.fixture
def call(capsys, monkeypatch):
    """Run `bellief` with the given arguments; returns exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


@pytest.fixture
def table(tmp_path):
    """Write a file (text or bytes) and return its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def data(table):
    """A small log without mistakes: two states, two actions, each pair tried once."""
    return table(HEADER + ROWS)


def assert_one_sentence(result, *fragments, code=2):
    """What every mistake looks like: one line on standard error, nothing on standard output."""
    assert result.code == code
    assert result.out == ""
    assert result.err.endswith((".\n", "?\n"))
    assert result.err.count("\n") == 1, result.err
    assert "Traceback" not in result.err
    for fragment in fragments:
        assert fragment in result.err
