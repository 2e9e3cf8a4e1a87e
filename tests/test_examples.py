"""Every public name has an example, in its own docstring or in its module's, and the examples run."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import bellief

REFERENCE = (Path(__file__).parents[1] / "docs" / "api.md").read_text()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST


def documented(kind, target, options):
    """What one entry of the reference shows: (module, name)."""
    if kind != "module":
        return [tuple(target.rsplit(".", 1))]
    module, listed = importlib.import_module(target), re.search(r":members: (.+)", options)
    if listed:
        return [(target, name) for name in listed.group(1).split(", ")]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == target]
    shown = getattr(module, "__all__", own)
    return [(target, name) for name in shown if not name.startswith("_") and getattr(module, name).__doc__]


def public_names():
    entries = re.findall(r"^\.\. auto(module|class|function|exception):: (\S+)\n((?:   :.*\n)*)", REFERENCE, re.M)
    names = [one for entry in entries for one in documented(*entry)]
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


def test_every_public_name_has_an_example():
    missing = []
    for (module, name), value in NAMES.items():
        shared = example_of(importlib.import_module(module).__doc__)
        if not example_of(value.__doc__) and not re.search(rf"\b{name}\b", shared):
            missing.append(f"{module}.{name}")
    assert missing == []


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
