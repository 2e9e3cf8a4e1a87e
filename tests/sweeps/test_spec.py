"""Descriptions of sweeps: what is accepted, what is refused and how, and that a description can do no harm."""

import json
import re
from pathlib import Path

import pytest
import yaml

from bellief.errors import UserError
from bellief.sweeps.cells import expand
from bellief.sweeps.spec import Spec, build_spec, json_schema, load_spec, parse_yaml

BASE = """
name: study
steps: 1e3
environments:
  - nchain
  - {name: nchain, label: slippery, settings: {slip: 0.4}}
agents:
  - psrl
  - {name: bbi, grid: {rule: [mean, optimistic], horizon: [5, 10]}, runs: 3}
"""


@pytest.fixture
def load(tmp_path):
    def read(text, *changes):
        path = tmp_path / "sweep.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_spec(path, list(changes))

    return read


def test_load(load):
    spec = load(BASE)
    assert (spec.name, spec.steps, spec.seed, spec.runs, spec.half_life) == ("study", 1000, 0, 10, 1000.0)
    assert [entry.name for entry in spec.environments] == ["nchain", "nchain"]
    assert spec.environments[1].settings == {"slip": 0.4}
    assert spec.agents[1].grid == {"rule": ["mean", "optimistic"], "horizon": [5, 10]}


def test_resolved_spec_comes_back(load):
    spec = load(BASE)
    assert build_spec(yaml.safe_load(spec.to_yaml()), "again") == spec


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("steps=50", lambda spec: spec.steps == 50),
        ("seed=7", lambda spec: spec.seed == 7),
        ("agents.psrl.runs=5", lambda spec: spec.agents[0].runs == 5),
        ("agents.1.grid.rule=[mean]", lambda spec: spec.agents[1].grid["rule"] == ["mean"]),
        ("agents.psrl.settings.prior.dirichlet=0.1", lambda spec: spec.agents[0].settings == {"prior.dirichlet": 0.1}),
        ("environments.slippery.settings.slip=0.3", lambda spec: spec.environments[1].settings["slip"] == 0.3),
        ("agents=[psrl]", lambda spec: len(spec.agents) == 1),
    ],
)
def test_set(load, change, read):
    assert read(load(BASE, change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("steps", "KEY=VALUE"),
        ("steps=", "KEY=VALUE"),
        ("agents.nobody.runs=3", "no 'nobody'"),
        ("agents.9.runs=3", "no '9'"),
        ("steps.more=3", "cannot change|cannot follow"),
        ("stepps=3", "stepps: there is no such field"),
        ("steps=!!python/object/apply:os.getcwd []", "cannot be read as YAML"),
    ],
)
def test_set_mistakes(load, change, message):
    with pytest.raises(UserError, match=message):
        load(BASE, change)


MISTAKES = [
    ("- a\n- b", "is no description of a sweep"),
    ("name: [", "line 1 cannot be read as YAML"),
    ("name: a\nname: b\n", "'name' is given twice"),
    ("a: &x [1]\nb: *x\n", "references"),
    (b"\xff\xfe\x00", "is no text"),
    ("[" * 20_000, "nested too deeply|cannot be read"),
    (b"#" * 1_000_001, "too large"),
    ("name: x\nagents: [psrl]\n", "environments: it is missing"),
    ("name: x\nenvironments: []\nagents: [psrl]", "environments: "),
    (BASE.replace("steps: 1e3", "steps: 0"), "steps: "),
    (BASE.replace("steps: 1e3", "steps: 1.5"), "steps: "),
    (BASE + "half_life: .inf", "half_life: "),
    (BASE + "colour: red", "colour: there is no such field"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_get_one_sentence(load, text, message):
    with pytest.raises(UserError, match=message) as caught:
        load(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_missing_file(tmp_path):
    with pytest.raises(UserError, match="There is no file"):
        load_spec(tmp_path / "none.yaml")


CODE = [
    "!!python/object/apply:pathlib.Path.touch [{0}]",
    "!!python/object/new:subprocess.Popen [[touch, {0}]]",
    "!!python/name:os.system",
]


@pytest.mark.parametrize("tag", CODE)
def test_a_description_cannot_run_code(load, tmp_path, tag):
    witness = tmp_path / "ran"
    with pytest.raises(UserError, match="cannot be read as YAML"):
        load(BASE + f"seed: {tag.format(witness)}\n")
    assert not witness.exists()


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/b", "../a", "/tmp/a", "a\\b", "a b", "~", ".hidden", "a\nb", "a\x00b", "é", "x" * 65]
)
def test_names_stay_in_their_folder(name):
    with pytest.raises(UserError, match="name: "):
        build_spec({"name": name, "environments": ["nchain"], "agents": ["psrl"]}, "test")


@pytest.mark.parametrize("label", ["a/b", "a\nb", "", "a\\b", "x" * 81])
def test_odd_labels(label):
    with pytest.raises(UserError, match=r"agents.0.label: "):
        build_spec({"name": "a", "environments": ["nchain"], "agents": [{"name": "psrl", "label": label}]}, "test")


def test_schema_documents_every_field():
    schema = json_schema()
    assert set(schema["properties"]) == set(Spec.model_fields)
    assert schema["required"] == ["name", "environments", "agents"]
    for model in (schema, *schema["$defs"].values()):
        for field in model["properties"].values():
            assert field["description"]
    assert {"type": "string"} in schema["properties"]["agents"]["items"]["anyOf"]


def test_published_schema_is_up_to_date():
    published = Path(__file__).parents[2] / "docs" / "sweep.schema.json"
    assert json.loads(published.read_text()) == json_schema(), "run: bellief store schema > docs/sweep.schema.json"


def test_every_description_in_the_guide_is_right(load):
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "sweeps.md").read_text()
    (described,) = re.findall(r"```yaml\n(.*?)```", guide, flags=re.DOTALL)
    assert len(expand(load(described))) == 16


def test_many_keys_take_no_longer_than_they_should():
    """Looking for keys that are given twice must not compare each with all others."""
    import time

    text = "{" + ", ".join(f"k{number}: 1" for number in range(20_000)) + "}"
    began = time.process_time()
    assert len(parse_yaml(text, "test")) == 20_000
    assert time.process_time() - began < 20  # a second or two; comparing all pairs takes minutes


def test_a_large_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "large.yaml"
    with open(path, "wb") as file:
        file.truncate(2**34)  # sixteen gigabytes that take no room
    with pytest.raises(UserError, match="too large"):
        load_spec(path)


def test_a_mistake_quotes_little_of_a_long_name():
    with pytest.raises(UserError) as caught:
        build_spec({"name": "x" * 500_000, "environments": ["nchain"], "agents": ["psrl"]}, "test")
    assert len(str(caught.value)) < 300
