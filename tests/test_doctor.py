import importlib.metadata
import json

import pytest

from bellief import doctor
from bellief.cli.entry import main
from bellief.mdp import bellman


@pytest.fixture
def short(monkeypatch):
    """No self-tests: they compile."""
    for name in ("_devices", "_correctness", "_speed"):
        monkeypatch.setattr(doctor, name, lambda: doctor.Check("left out", True, ""))


def problems(checks):
    return {check.name: check for check in checks if check.ok is False}


def test_a_sound_installation_has_no_problem(short):
    checks = doctor.diagnose()
    assert not problems(checks)
    assert {"Python", "Bellief", "jax", "numpy", "machine"} <= {check.name for check in checks}


def test_self_tests_pass_here_and_notice_a_wrong_solver(monkeypatch):
    assert doctor._correctness().ok
    assert doctor._devices().ok
    monkeypatch.setattr(bellman, "evaluate_exact", lambda mdp, policy: bellman.evaluate_finite(mdp, policy, 20))
    assert doctor._correctness().ok is False


def test_an_old_python_a_missing_and_an_old_package_are_named(short, monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == "scipy":
            raise importlib.metadata.PackageNotFoundError
        return "0.1" if name == "numpy" else real(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", version)
    monkeypatch.setattr(doctor.sys, "version_info", (3, 9, 0))
    found = problems(doctor.diagnose())
    assert set(found) == {"Python", "scipy", "numpy"}
    assert "pip install" in found["scipy"].advice
    assert found["numpy"].found == "0.1"


def test_folders_that_cannot_be_written(short, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "file" / "compiled"))
    checks = doctor.diagnose()
    assert set(problems(checks)) == {"compilation cache"}
    assert "MPLCONFIGDIR" in next(check.found for check in checks if check.name == "matplotlib's cache")


def test_one_failing_check_does_not_hide_the_others(short, monkeypatch):
    def broken():
        raise RuntimeError("no device")

    monkeypatch.setattr(doctor, "_devices", broken)
    checks = doctor.diagnose()
    assert [check.found for check in problems(checks).values()] == ["RuntimeError: no device"]
    assert checks[-1].name == "left out"


def test_on_the_command_line(short, monkeypatch, capsys):
    assert main(["doctor", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    monkeypatch.setattr(doctor.sys, "version_info", (3, 9, 0))
    assert main(["doctor", "-q"]) == 1
    shown = capsys.readouterr().out
    assert "1 problem(s)" in shown
    assert "Use Python 3.11" in shown
