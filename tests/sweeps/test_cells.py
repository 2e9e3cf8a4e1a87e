"""The identity of a cell: what decides its numbers, and nothing else."""

import pytest

from bellief.errors import UserError
from bellief.sweeps.cells import cell_id, expand
from bellief.sweeps.spec import build_spec
from sweeps.conftest import TINY


def cells_of(**changes):
    return [cell.id for setup in expand(build_spec(TINY | changes, "test")) for cell in setup.cells]


BASE = cells_of()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"agents": [{"name": "q-learning", "label": "mine"}]},
        {"environments": [{"name": "nchain", "label": "mine"}]},
        {"environments": [{"name": "nchain", "settings": {"slip": 0.2, "size": 5}}]},  # its usual values
        {"half_life": 20.0},
        {"environments": [{"name": "nchain", "steps": 60}], "steps": 1000},
        {"readings": [100]},  # beyond the last step
    ],
)
def test_what_decides_no_number_changes_no_identity(changes):
    assert cells_of(**changes) == BASE


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"steps": 61},
        {"half_life": 21},
        {"readings": [7]},
        {"agents": [{"name": "q-learning", "settings": {"discount": 0.9}}]},
        {"agents": ["psrl"]},
        {"environments": ["doubleloop"]},
        {"environments": [{"name": "nchain", "settings": {"slip": 0.3}}]},
    ],
)
def test_what_decides_numbers_changes_the_identity(changes):
    assert not set(cells_of(**changes)) & set(BASE)


def test_other_runs_agents_and_environments_change_nothing():
    assert cells_of(runs=5) == BASE[:1]
    assert cells_of(runs=11) == BASE[:2]
    assert set(BASE) < set(cells_of(agents=["psrl", "q-learning"], environments=["maze", "nchain"]))


def test_identity_is_the_same_in_every_process():
    """A literal: if it changes, what is in the stores of earlier versions is no longer found."""
    identity = {"generation": 1, "environment": {"name": "a", "settings": {"x": 0.1}}, "first": 0}
    assert cell_id(identity) == cell_id(dict(reversed(identity.items()))) == "b07e509e7bfd30616f8a"


def test_grid_and_precedence():
    spec = build_spec(
        {
            "name": "a",
            "steps": 100,
            "runs": 10,
            "environments": [{"name": "nchain", "grid": {"slip": [0.1, 0.2]}, "steps": 50, "runs": 20}, "doubleloop"],
            "agents": ["psrl", {"name": "bbi", "label": "b", "grid": {"horizon": [5, 6]}, "steps": 7}],
        },
        "test",
    )
    setups = expand(spec)
    assert len(setups) == 9
    assert [setup.environment for setup in setups[::3]] == ["nchain slip=0.1", "nchain slip=0.2", "doubleloop"]
    assert [setup.agent for setup in setups[:3]] == ["psrl", "b horizon=5", "b horizon=6"]
    assert [(setup.steps, setup.runs) for setup in setups[-3:]] == [(100, 10), (7, 10), (7, 10)]
    assert (setups[0].steps, setups[0].runs, len(setups[0].cells)) == (50, 20, 2)
    assert setups[1].cells[0].identity["agent"]["settings"]["horizon"] == 5


def test_only():
    agents = ["psrl", {"name": "q-learning", "only": ["doubleloop"]}]
    setups = expand(build_spec(TINY | {"environments": ["nchain", "doubleloop"], "agents": agents}, "test"))
    assert [(setup.environment, setup.agent) for setup in setups] == [
        ("nchain", "psrl"),
        ("doubleloop", "psrl"),
        ("doubleloop", "q-learning"),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agents": ["psrll"]}, "did you mean 'psrl'"),
        ({"environments": ["nchian"]}, "did you mean 'nchain'"),
        ({"agents": [{"name": "psrl", "settings": {"x": 1}}]}, "no setting 'x'"),
        ({"environments": [{"name": "nchain", "settings": {"x": 1}}]}, "no parameter 'x'"),
        ({"environments": [{"name": "nchain", "table": True}]}, "table, bins and continuous are for Gymnasium"),
        ({"environments": ["NoSuch-v0"]}, "NoSuch"),
        ({"agents": ["psrl", "psrl"]}, "Two agents of the sweep are called 'psrl'"),
        ({"agents": [{"name": "psrl", "only": ["maze"]}]}, "only in 'maze'"),
        ({"environments": ["pendulum"]}, "for discrete states .* keep 'q-learning' out of 'pendulum'"),
        ({"agents": ["gptd"]}, "for continuous states and those of 'nchain' are discrete"),
        ({"agents": [{"name": "bbi", "settings": {"mode": "paper"}}]}, "no setting 'mode'"),
        ({"environments": [{"name": "pendulum", "continuous": True}]}, "continuous are for Gymnasium"),
        ({"environments": [{"name": "CartPole-v1"}]}, "Box"),
        ({"environments": [{"name": "CartPole-v1", "continuous": True, "bins": 3}]}, "leave out table and bins"),
        ({"environments": [{"name": "FrozenLake-v1", "continuous": True}]}, "leave out 'continuous'"),
        (
            {"environments": [{"name": "CartPole-v1", "continuous": True, "settings": {"termination": "os:remove"}}]},
            "would import a module",
        ),
        ({"agents": ["oracle"], "environments": ["FrozenLake-v1"]}, "must be told the model"),
        ({"runs": 1_000_000, "agents": [{"name": "psrl", "grid": {"discount": [0.5] * 100}}]}, "is the most"),
    ],
)
def test_mistakes(changes, message):
    with pytest.raises(UserError, match=message):
        expand(build_spec(TINY | changes, "test"))


def test_an_environment_cannot_import_a_module(tmp_path, monkeypatch):
    witness = tmp_path / "ran"
    (tmp_path / "evil_module.py").write_text(f"open({str(witness)!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="would import a module"):
        expand(build_spec(TINY | {"environments": ["evil_module:Env-v0"]}, "test"))
    assert not witness.exists()


def test_reading_needs_no_environment():
    spec = build_spec(TINY | {"environments": ["NoSuch-v0"]}, "test")
    assert len(expand(spec, check=False)[0].cells) == 3
