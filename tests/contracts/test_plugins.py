"""Agents of other packages: listed without being imported, run by name, and their faults told in a sentence."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bellief
from bellief import UserError
from bellief.cli import main
from bellief.registry import AGENTS, find
from bellief.testing import check_agent

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "boltzmann_agent"


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Installs packages for one test: their metadata in a folder on the search path, as an installer leaves it."""
    loaded = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(project, modules):
        folder = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            + (f"Summary: {project['description']}\n" if "description" in project else "")
        )
        points = project["entry-points"]["bellief.agents"]
        (folder / "entry_points.txt").write_text(
            "[bellief.agents]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
        )
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)
        # Python and Bellief remember what is on the search path; a longer path is another one.
        importlib.invalidate_caches()
        monkeypatch.syspath_prepend(str(tmp_path / project["name"]))

    yield install
    for name in set(sys.modules) - loaded:
        if name.startswith("plugin_") or name == "bellief_boltzmann":
            del sys.modules[name]


@pytest.fixture
def example(packages):
    """The example package, from its own pyproject.toml."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    packages(project, {"bellief_boltzmann": (EXAMPLE / "bellief_boltzmann.py").read_text()})


def plugin(name, points, **more):
    return {"name": name, "version": "1.0", "entry-points": {"bellief.agents": points}, **more}


def listed(capsys):
    capsys.readouterr()
    assert main(["list", "agents", "--json"]) == 0
    return {entry["name"]: entry["summary"] for entry in json.loads(capsys.readouterr().out)}


def test_example_is_listed_without_being_imported(example, capsys):
    entries = listed(capsys)
    assert entries["boltzmann"] == "Boltzmann exploration on the mean MDP (from bellief-boltzmann)"
    assert next(iter(entries)) == "bbi"
    assert len(AGENTS) == len(entries)
    assert "bellief_boltzmann" not in sys.modules


def test_example_runs_by_name(example, capsys):
    arguments = ["run", "--env", "nchain", "--agent", "boltzmann", "--steps", "20", "--runs", "2", "--json", "-q"]
    assert main([*arguments, "--set", "horizon=3", "--set", "temperature=0.5"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["agent"] == "boltzmann"
    assert document["settings"]["temperature"] == 0.5


def test_example_keeps_the_contract(example):
    check_agent("boltzmann")


def test_example_is_as_short_as_the_guide_says():
    lines = (EXAMPLE / "bellief_boltzmann.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 60


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("hatchling", "pip")), reason="building needs hatchling"
)
def test_example_installs(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(target), str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [sys.executable, "-c", "from bellief.registry import AGENTS; print(AGENTS['boltzmann'].summary)"],
        env={**os.environ, "PYTHONPATH": f"{target}{os.pathsep}{Path(bellief.__file__).parents[1]}"},
        capture_output=True,
        text=True,
    )
    assert shown.stdout.strip() == "Boltzmann exploration on the mean MDP (from bellief-boltzmann)", shown.stderr


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (
            "import nowhere_to_be_found\n",
            "cannot be loaded (ModuleNotFoundError: No module named 'nowhere_to_be_found')",
        ),
        ("1 / 0\n", "cannot be loaded (ZeroDivisionError: division by zero)"),
        ("Config = dict\n", "Agent 'faulty' of package 'plugin-faulty' is incomplete: it has no init"),
        ("from bellief import UserError\nraise UserError('Install more.')\n", "Install more."),
    ],
)
def test_faulty_agent_fails_only_when_it_is_used(packages, capsys, module, words):
    packages(plugin("plugin-faulty", {"faulty": "plugin_faulty"}), {"plugin_faulty": module})
    assert listed(capsys)["faulty"] == "an agent (from plugin-faulty)"
    assert main(["run", "--env", "nchain", "--agent", "faulty", "-q"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_our_names_are_ours(packages, capsys):
    packages(plugin("plugin-thief", {"psrl": "plugin_thief"}), {})
    assert find(AGENTS, "agent", "psrl").load().__name__ == "bellief.agents.psrl"
    entries = listed(capsys)
    assert entries["psrl"] == "posterior sampling with a learned prior: solve one sampled MDP"
    assert entries["plugin-thief:psrl"] == "cannot be used, because its name is taken"
    with pytest.raises(
        UserError, match="'plugin-thief' offers an agent called 'psrl', which is the name of one of Bellief's"
    ):
        find(AGENTS, "agent", "plugin-thief:psrl").load()


def test_two_packages_cannot_share_a_name(packages, capsys):
    packages(plugin("plugin-one", {"same": "plugin_one"}), {})
    packages(plugin("plugin-two", {"same": "plugin_two"}), {})
    assert {"plugin-one:same", "plugin-two:same"} <= set(listed(capsys))
    with pytest.raises(UserError, match="There is no agent called 'same'"):
        find(AGENTS, "agent", "same")
    with pytest.raises(UserError, match="'plugin-one' is not the only one to offer an agent called 'same'"):
        find(AGENTS, "agent", "plugin-one:same").load()


def test_our_own_names_need_no_search(monkeypatch):
    def search(**options):
        raise AssertionError

    monkeypatch.setattr("importlib.metadata.entry_points", search)
    assert find(AGENTS, "agent", "bbi").target == "bellief.agents.bbi"


def test_an_attribute_and_extras_are_understood(packages):
    module = "from bellief.agents import psrl as agent\n"
    packages(plugin("plugin-inside", {"inside": "plugin_inside:agent [nn]"}), {"plugin_inside": module})
    assert find(AGENTS, "agent", "inside").load().__name__ == "bellief.agents.psrl"
