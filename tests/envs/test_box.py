"""The continuous environments: physics against SciPy, the family's definition, and Gymnasium's interface."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.integrate import solve_ivp

from bellief.envs import linear_model, make, make_any, pendulum
from bellief.errors import UserError
from bellief.registry import BOX_GYMNASIUM_IDS

GOLDEN_MATRIX = [1.145338166, 0.036336844, 0.172532237, -0.1997471]
GOLDEN_REWARD = [0.00713552293, -0.00271973622, -0.00602238014, 0.00232772097]


@pytest.mark.parametrize(("action", "uniform"), [(0, 0.5), (1, 0.0), (2, 0.9)])
def test_the_pendulum_obeys_its_equation(action, uniform):
    force = 50 * (action - 1) + 10 * (2 * uniform - 1)

    def slope(_, state):
        angle, velocity = state
        share = 1 / 10
        top = 9.8 * np.sin(angle) - share * 2 * 0.5 * velocity**2 * np.sin(2 * angle) / 2
        top -= share * np.cos(angle) * force
        return [velocity, top / (4 * 0.5 / 3 - share * 2 * 0.5 * np.cos(angle) ** 2)]

    state = np.array([0.3, -0.8])
    expected = solve_ivp(slope, (0, 0.1), state, rtol=1e-10, atol=1e-12).y[:, -1]
    found = pendulum.step((), jnp.asarray(state, jnp.float32), jnp.int32(action), jnp.array([uniform, 0.0]))
    np.testing.assert_allclose(found.state, expected, atol=1e-3)
    assert float(found.reward) == 0.0


def test_falling_costs_one_and_ends():
    outcome = pendulum.step((), jnp.array([1.5, 5.0]), jnp.int32(1), jnp.array([0.5, 0.5]))
    assert bool(outcome.terminated)
    assert float(outcome.reward) == -1.0


def test_a_linear_model_is_linear():
    environment = linear_model.linear_model(member_number=3, noise=0.0)
    constants = environment.constants(17)
    matrices, rewards = linear_model.member(3)
    state = np.array([0.1, -0.2, 0.3, 0.05], np.float32)
    outcome = environment.step(constants, jnp.asarray(state), jnp.int32(4), jnp.full(4, 0.5))
    np.testing.assert_allclose(outcome.state, matrices[4] @ state, rtol=1e-5)
    np.testing.assert_allclose(outcome.reward, rewards[4] @ state, rtol=1e-4)


def test_every_run_meets_its_own_member():
    environment = linear_model.linear_model()
    first, second = (np.asarray(environment.constants(run).transition) for run in (0, 1))
    assert np.abs(first - second).max() > 0.1
    np.testing.assert_array_equal(first, np.asarray(linear_model.member(0)[0], np.float32))


def test_the_family_does_not_change():
    """Results refer to these matrices; a change of the generator or the seeds must not pass unseen."""
    matrices, rewards = linear_model.member(0)
    np.testing.assert_allclose(matrices[0, 0], GOLDEN_MATRIX, rtol=1e-6)
    np.testing.assert_allclose(rewards[0], GOLDEN_REWARD, rtol=1e-6)


def test_leaving_the_ball_costs_one():
    environment = linear_model.linear_model(member_number=0, noise=0.0)
    constants = environment.constants(0)
    state = jnp.array([0.99, 0.0, 0.0, 0.0])
    outcomes = [environment.step(constants, state, jnp.int32(action), jnp.full(4, 0.5)) for action in range(11)]
    assert any(bool(one.terminated) for one in outcomes)
    for outcome in outcomes:
        assert bool(outcome.terminated) == (np.linalg.norm(outcome.state) > 1)
        assert (float(outcome.reward) < -0.9) == bool(outcome.terminated)


@pytest.mark.parametrize("identifier", BOX_GYMNASIUM_IDS)
def test_gymnasium_accepts_it(identifier):
    env = gymnasium.make(f"bellief:{identifier}").unwrapped
    modes = env.metadata["render_modes"]
    check_env(gymnasium.make(f"bellief:{identifier}", render_mode=modes[-1]).unwrapped, skip_render_check=False)


def test_the_pendulum_is_drawn():
    env = gymnasium.make("bellief:BelliefPendulum-v0", render_mode="rgb_array")
    env.reset(seed=0)
    upright = env.render()
    for _ in range(5):
        env.step(2)
    assert upright.dtype == np.uint8
    assert upright.shape == (240, 320, 3)
    assert (upright != env.render()).any()
    # The knob at the tip of an upright pole.
    assert tuple(upright[240 - 50 - 130, 160]) == (47, 158, 99)


def test_the_linear_model_has_no_picture():
    with pytest.raises(UserError, match="no picture"):
        make_any("linear-model").render_image(np.zeros(4))
    assert "length 0.000 of 1" in make_any("linear-model").render_text(np.zeros(4))


def test_make_is_for_tables():
    with pytest.raises(UserError, match="cannot be counted"):
        make("pendulum")
    with pytest.raises(UserError, match="no parameter 'slip'"):
        make_any("pendulum", slip=0.1)
    with pytest.raises(UserError, match="'noise' is -1"):
        make_any("linear-model", noise=-1.0)
