"""What all registered environments have in common."""

import subprocess
import sys

import numpy as np
import pytest

from bellief import UserError
from bellief.envs import Environment, make
from bellief.envs.base import single_start
from bellief.envs.nchain import ChainView
from bellief.mdp.tabular_mdp import make_outcomes
from bellief.registry import DISCRETE, ENVIRONMENTS
from bellief.types import Spaces


@pytest.fixture(params=sorted(name for name, entry in ENVIRONMENTS.items() if DISCRETE in entry.kinds))
def environment(request):
    return make(request.param)


def test_name_and_parameters_build_it_again(environment):
    again = make(environment.name, **environment.parameters)
    for field, value in environment.outcomes._asdict().items():
        np.testing.assert_array_equal(getattr(again.outcomes, field), value)
    assert again.parameters == environment.parameters


def test_names_are_complete_and_distinct(environment):
    assert len(environment.action_names) == environment.actions
    assert len({environment.describe(state) for state in range(environment.states)}) == environment.states
    texts = [environment.render_text(state) for state in range(environment.states)]
    assert all(text.isascii() and text.replace("\n", "").isprintable() for text in texts)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nchain", Spaces(5, 2, False, 0.0, 10.0, support=2)),
        ("doubleloop", Spaces(9, 2, False, 0.0, 2.0, support=1)),
        ("lavalake", Spaces(35, 4, False, -50.0, 50.0, support=3)),
        ("lavalake10", Spaces(100, 4, False, -50.0, 50.0, support=3)),
        ("maze", Spaces(264, 4, False, 0.0, 3.0, support=3)),
    ],
)
def test_spaces(name, expected):
    assert make(name).spaces() == expected


def test_spaces_ignore_what_cannot_happen_and_count_the_end():
    outcomes = make_outcomes(
        probability=[[[0.5, 0.5, 0.0]]],
        next_state=[[[0, 0, 0]]],
        reward=[[[1.0, 2.0, 99.0]]],
        start=single_start(1, 0),
        terminated=[[[False, True, False]]],
    )
    environment = Environment("one", outcomes, ("stay",), {}, ChainView(1))
    assert environment.spaces() == Spaces(1, 1, True, 1.0, 2.0, support=2)


def test_no_slip_leaves_the_lava_out_of_the_rewards_of_a_narrow_lane():
    assert make("lavalake", layout=["A.G", "###"], slip=0.0).spaces().reward_low == -1


def test_wrong_names_parameters_and_states():
    with pytest.raises(UserError, match="did you mean 'nchain'"):
        make("nchan")
    with pytest.raises(UserError, match="'nchain' has no parameter 'slips': use one of size, slip"):
        make("nchain", slips=0.1)
    with pytest.raises(UserError, match=r"no state 5: use one of 0\.\.4"):
        make("nchain").describe(5)
    with pytest.raises(UserError, match="no grid to draw"):
        make("doubleloop").render_image(0)


def test_constructors_load_no_drawing_and_no_gymnasium():
    code = (
        "import sys\n"
        "from bellief.envs import lava_lake\n"
        "lava_lake.lava_lake().render_text(0)\n"
        "print([name for name in ('PIL', 'matplotlib', 'bellief.envs.gymnasium') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
