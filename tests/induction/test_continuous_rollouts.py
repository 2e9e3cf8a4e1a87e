"""Utilities by rollouts of linear models, against sums by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError
from bellief.agents import continuous_bbi_paper
from bellief.envs import make_any
from bellief.features import parse
from bellief.induction import continuous, continuous_rollouts
from bellief.mdp.linear_mdp import Form, LinearGaussianMDP
from bellief.values.linear_values import make_design

LINE, BOX = parse("constant+raw", 1), jnp.array([[-1.0], [1.0]])
FORM = Form("difference", LINE, LINE)
STATES = jnp.array([[0.0], [0.5]])


def model(noise=0.0, end_reward=0.0, pay=1.0):
    """Action 0 goes left by 1 and pays nothing, action 1 goes right by 1 and pays the state, times `pay`."""
    moves = jnp.array([[[-1.0], [0.0]], [[1.0], [0.0]]])
    rewards = jnp.array([[0.0, 0.0], [0.0, pay]])
    return LinearGaussianMDP(moves, noise * jnp.ones((2, 1, 1)), rewards, jnp.array(end_reward), BOX)


def stack(*models):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)


def world(ends=lambda state: jnp.zeros((), state.dtype), split=False, limits=None):
    return continuous_rollouts.World(FORM, ends, LINE, BOX, 0.5, split, limits)


def prefer(*actions):
    """Weights of Q that prefer these actions everywhere; the first row is the last step's."""
    return jnp.stack([jnp.array([[1.0 - action, 0.0], [float(action), 0.0]]) for action in actions])


def roll(found, plans, row, key=0):
    return np.asarray(found(jax.random.key(key), plans, jnp.array(row)))


def test_a_policy_of_every_step_is_followed_in_its_order():
    """Right, right, left, from s: s + (s + 1) / 2 + 0; rows are in the order of steps to go."""
    found = continuous_rollouts.utilities("sampled", world(), stack(model(), model(pay=2.0)), STATES, 3)
    told = roll(found, prefer(0, 1, 1), 2)
    assert told.shape == (2, 3, 2)
    np.testing.assert_allclose(told[0], np.tile([0.5, 0.5 + 0.75], (3, 1)), rtol=1e-6)
    np.testing.assert_allclose(told[1], 2 * told[0], rtol=1e-6)
    # One step less to go: right, then left.
    np.testing.assert_allclose(roll(found, prefer(0, 1, 1), 1)[0, 0], [0.0, 0.5], atol=1e-6)


def test_nothing_is_paid_after_an_end():
    """From 0.5 the second step to the right ends: 0.5 and then the end's -3, or the step's own reward."""
    ends = lambda state: (state[0] > 2).astype(state.dtype)  # noqa: E731
    plans = prefer(1, 1, 1)
    split = continuous_rollouts.utilities("sampled", world(ends, True), stack(model(end_reward=-3.0)), STATES, 1)
    assert roll(split, plans, 2)[0, 0, 1] == pytest.approx(0.5 + 0.5 * -3.0)
    plain = continuous_rollouts.utilities("sampled", world(ends), stack(model(end_reward=-3.0)), STATES, 1)
    assert roll(plain, plans, 2)[0, 0, 1] == pytest.approx(0.5 + 0.5 * 1.5)
    limits = continuous.RewardRange(jnp.array([0.0, 0.2]), jnp.array([-1.0, -1.0]))
    clipped = continuous_rollouts.utilities("sampled", world(ends, True, limits), stack(model()), STATES, 1)
    assert roll(clipped, plans, 2)[0, 0, 1] == pytest.approx(0.2 + 0.5 * -1.0)


def test_the_second_formula_is_the_mean_of_the_first():
    models = stack(model(noise=0.3))
    first = continuous_rollouts.utilities("sampled", world(), models, STATES, 4_000)
    second = continuous_rollouts.utilities("expected", world(), models, STATES, 4_000)
    drawn, averaged = roll(first, prefer(1, 1, 1), 2), roll(second, prefer(1, 1, 1), 2)
    assert averaged.shape == (1, 1, 2)
    np.testing.assert_allclose(averaged[:, 0], drawn.mean(1), rtol=1e-4)
    # The walk has no drift but the step's, so its expectation is that without noise.
    error = drawn.std(1) / np.sqrt(4_000)
    assert (error > 0).all()
    assert (np.abs(averaged[0, 0] - [0 + 1 / 2 + 2 / 4, 0.5 + 1.5 / 2 + 2.5 / 4]) < 4.5 * error[0]).all()


@pytest.mark.parametrize("formula", ["sampled", "expected"])
def test_weights_tell_models_apart_by_their_rollouts(formula):
    """Of two models that pay 1 and 2 a step each value sample belongs to one; where both pay 1, to both."""

    def effective(other):
        flat = [
            LinearGaussianMDP(jnp.zeros((1, 2, 1)), jnp.zeros((1, 1, 1)), jnp.array([[pay, 0.0]]), jnp.array(0.0), BOX)
            for pay in (1.0, other)
        ]
        models, states = stack(*flat), jnp.linspace(-1, 1, 6)[:, None]
        following = continuous.next_states(FORM, models, states, jnp.zeros((6, 1)))
        ahead = continuous.look_ahead(FORM, models, states, following, lambda state: jnp.array(0.0), LINE, BOX)
        ahead = ahead._replace(end_reward=None)
        design = make_design(jax.vmap(lambda state: LINE(state, BOX))(states), ridge=1e-4)
        rollouts = continuous_rollouts.utilities(formula, world(), models, states[:3], 2)
        given = (jax.random.key(0), design, ahead, continuous.greedy, 4, 0.5, None, jnp.array(0.02), 3, 2, 3)
        belief, seen = continuous.by_gaussian(*given, rollouts=rollouts)
        return np.asarray(seen.effective_sample_size), belief

    alike, belief = effective(1.0)
    np.testing.assert_allclose(alike, 2.0, rtol=1e-3)
    np.testing.assert_allclose(belief.mean[0], [1 + 1 / 2 + 1 / 4 + 1 / 8, 0.0], atol=0.02)
    apart, _ = effective(2.0)
    assert apart[0] == pytest.approx(2.0)
    assert (apart[1:] < 1.6).all()


@pytest.mark.slow
@pytest.mark.parametrize("formula", ["sampled", "expected"])
def test_the_agent_plans_with_either_formula(formula):
    spaces = make_any("pendulum").spaces
    small = {"horizon": 3, "mdps": 2, "states": 12, "samples": 4, "utility_samples": 2, "utility_states": 3}
    config = continuous_bbi_paper.Config(utilities=formula, **small)
    state = continuous_bbi_paper.init(jax.random.key(0), config, spaces)
    state, info = jax.jit(continuous_bbi_paper.plan, static_argnums=(1, 2))(jax.random.key(1), config, spaces, state)
    assert np.isfinite(state.weights).all()
    assert 1 <= float(info.effective_sample_size) <= 2


def test_formulas_are_those_of_the_gaussian():
    with pytest.raises(UserError, match="gaussian"):
        continuous_bbi_paper.Config(utilities="sampled", values="joint")
    with pytest.raises(UserError, match="no utilities 'all'"):
        continuous_bbi_paper.Config(utilities="all")
