"""Sweeps where only JAX, NumPy, SciPy, pandas, PyArrow and PyYAML are installed, as on many a GPU machine."""

import os
import subprocess
import sys

import pytest

from bellief.sweeps import plain_models
from sweeps.conftest import SOURCE, contents

pytestmark = pytest.mark.long

# The batch engine computes in this process, and the blocked modules stay blocked.
SCRIPT = """
import sys
for name in ("pydantic", "filelock", "rich", "gymnasium", "typer", "beartype", "duckdb"):
    sys.modules[name] = None
from bellief.sweeps import load_spec, open_store, run_sweep
from bellief.sweeps.engines.batch import Batch

spec = load_spec(sys.argv[1], ["runs=20"])
print(run_sweep(spec, "out/bare", engine=Batch).computed, run_sweep(spec, "out/bare", engine=Batch).computed)
print(len(open_store("out/bare").to_pandas()["run"].unique()))
try:
    load_spec(sys.argv[1], ["steps=0"])
except ValueError as error:
    print(error)
"""


def test_a_sweep_on_a_bare_machine(write_spec, tmp_path, tiny_cells, finished):
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", SCRIPT, str(write_spec())]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    lines = told.stdout.splitlines()
    assert lines[:2] == ["2 0", "20"], told.stderr
    assert "steps: it must have ge 1" in lines[2]
    assert {name.split(".")[0] for name in contents(tmp_path / "out" / "bare")} == {cell.id for cell in tiny_cells[:2]}


def mistakes():
    good = {"name": "a", "environments": ["nchain"], "agents": [{"name": "psrl"}]}
    yield good | {"nam": 1}, ("nam",), "extra_forbidden"
    yield {"environments": [], "agents": []}, ("name",), "missing"
    yield good | {"agents": [{"name": "psrl", "runs": 0}]}, ("agents", 0, "runs"), "limit"
    yield good | {"seed": -1}, ("seed",), "limit"
    yield good | {"name": "../up"}, ("name",), "limit"
    yield good | {"agents": []}, ("agents",), "limit"


@pytest.fixture
def plain(monkeypatch):
    """The module of descriptions, made again without pydantic."""
    import importlib.util

    from bellief.sweeps import spec

    monkeypatch.setitem(sys.modules, "pydantic", None)
    found = importlib.util.spec_from_file_location("plain_spec", spec.__file__)
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "plain_spec", module)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("document", "place", "kind"), list(mistakes()))
def test_mistakes_are_found_without_pydantic(plain, document, place, kind):
    with pytest.raises(plain_models.ValidationError) as caught:
        plain.Spec.model_validate(document)
    mistake = caught.value.errors()[0]
    assert (mistake["loc"], mistake["type"]) == (place, kind)


def test_the_same_description_with_and_without_pydantic(plain):
    from bellief.sweeps import spec

    document = {
        "name": "a",
        "half_life": 3,
        "environments": ["nchain", {"name": "doubleloop", "half_life": 7}],
        "agents": [{"name": "bbi", "grid": {"rule": ["mean", "optimistic"]}, "only": ["nchain"]}],
    }
    first, second = (module.Spec.model_validate(document) for module in (spec, plain))
    assert first.model_dump() == second.model_dump()
    assert first.model_dump(exclude_defaults=True) == second.model_dump(exclude_defaults=True)
    assert second.model_copy(update={"runs": 3}) == plain.Spec.model_validate(document | {"runs": 3})
    assert second != second.model_copy(update={"runs": 3})
    with pytest.raises(AttributeError, match="cannot be changed"):
        second.runs = 3
    with pytest.raises(ImportError, match="needs pydantic"):
        plain.json_schema()
