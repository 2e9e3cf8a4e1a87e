"""The benchmarks' own arithmetic."""

import importlib.util
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
