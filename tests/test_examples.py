"""Every public name has an example, in its own docstring or in its module's, and the examples run."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import bellief

REFERENCE = "\n".join(
    page.read_text() for page in sorted((Path(__file__).parents[1] / "docs" / "reference").glob("*.md"))
)
CONTRACT = ("Config", "State", "Info", "init", "plan", "act", "update", "policy", "informed")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST


def documented(target):
    """What one entry of the reference shows: (module, name). A module's page shows what is its own; an agent's, the
    contract of agents.
    """
    try:
        module = importlib.import_module(target)
    except ModuleNotFoundError:
        return [tuple(target.rsplit(".", 1))]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == target]
    shown = getattr(module, "__all__", own)
    if {"Config", "plan"} <= vars(module).keys():
        shown = [name for name in own if name in CONTRACT]
    return [(target, name) for name in shown if not name.startswith("_") and getattr(module, name).__doc__]


def public_names():
    names = [one for target in re.findall(r"^   (bellief\.\S+)$", REFERENCE, re.M) for one in documented(target)]
    names += [("bellief", name) for name in bellief.__all__ if name != "__version__"]
    found = {}
    for module, name in names:
        value = getattr(importlib.import_module(module), name)
        if inspect.isclass(value) or callable(value):
            found[value.__module__, value.__name__] = value
    return found


NAMES = public_names()
MODULES = sorted({module for module, _ in NAMES})


def example_of(text):
    return "\n".join(example.source + example.want for example in doctest.DocTestParser().get_examples(text or ""))


def test_the_reference_is_read():
    assert len(NAMES) > 300
    assert {("bellief.evaluation.policy_value", "evaluate"), ("bellief.mdp.bellman", "backup")} <= NAMES.keys()


@pytest.mark.parametrize("name", [name for name in bellief.__all__ if name != "__version__"])
def test_every_name_of_the_package_has_a_page(name):
    assert re.search(rf"^   bellief\.{name}$", REFERENCE, re.M)


def test_every_public_name_has_an_example():
    missing = []
    for (module, name), value in NAMES.items():
        shared = example_of(importlib.import_module(module).__doc__)
        if not example_of(value.__doc__) and not re.search(rf"\b{name}\b", shared):
            missing.append(f"{module}.{name}")
    assert not missing, f"names without an example in a docstring: {', '.join(missing)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    parts = {"": module} | {part: value for (home, part), value in NAMES.items() if home == name}
    ran = 0
    for part, value in parts.items():
        test = doctest.DocTestParser().get_doctest(
            value.__doc__, dict(vars(module)), f"{name}.{part}".rstrip("."), module.__file__, 0
        )
        said: list[str] = []
        result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
        assert not result.failed, "".join(said)
        ran += result.attempted
    assert ran
