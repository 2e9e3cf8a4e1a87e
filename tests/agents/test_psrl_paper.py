"""Posterior sampling: the plan is the exact solution of the MDP that was drawn."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError
from bellief.agents import psrl_paper
from bellief.beliefs import tabular
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.types import Spaces, Transition

STATES, ACTIONS = 4, 2
CONFIG = psrl_paper.Config(discount=0.9, tolerance=1e-6)
SPACES = Spaces(STATES, ACTIONS, False, -3.0, 3.0)


def learned(spaces, count=40):
    """A belief after some transitions, of which every pair has shown at most two outcomes."""
    generator = np.random.default_rng(0)
    state, action = generator.integers(0, STATES, count), generator.integers(0, ACTIONS, count)
    first = generator.random(count) < 0.6
    transitions = Transition(
        jnp.asarray(state),
        jnp.asarray(action),
        jnp.asarray(generator.normal(state - action, 0.5), jnp.float32),
        jnp.asarray(np.where(first, state, (state + 1 + action) % STATES)),
        jnp.asarray(~first & (state == 3)),
    )
    return tabular.update_batch(tabular.init(STATES, ACTIONS, spaces.terminates), transitions)


def optimum(oracle, mdp):
    """The best of all deterministic policies, and by how much its actions are better than others."""
    everything = list(itertools.product(range(ACTIONS), repeat=STATES))
    values = np.array([oracle.exact_values(mdp, np.eye(ACTIONS)[list(actions)]) for actions in everything])
    best = values.sum(1).argmax()
    quality = np.asarray(mdp.reward) + float(mdp.discount) * np.asarray(mdp.transition) @ values[best]
    return values[best], everything[best], np.abs(quality[:, 0] - quality[:, 1]).min()


def assert_solved(oracle, draw, plan, state, spaces):
    """Eight plans one after the other, each started from the last solution, which belongs to another MDP."""
    policies = set()
    for number in range(8):
        key = jax.random.key(number)
        mdp = jax.tree.map(lambda field: np.asarray(field, np.float64), draw(jax.random.split(key)[0]))
        assert (mdp.termination > 0).any() == spaces.terminates
        values, actions, margin = optimum(oracle, mdp)
        state, info = plan(key, state)
        np.testing.assert_allclose(state.values, values, atol=2e-4)
        np.testing.assert_array_equal(info.value_mean, state.values)
        if margin > 1e-3:
            np.testing.assert_array_equal(state.actions, actions)
            policies.add(actions)
    assert len(policies) > 1, "the posterior is wide enough for several policies"


def test_the_plan_solves_the_sampled_mdp(oracle):
    config = psrl_paper.Config(discount=0.9, tolerance=1e-6, prior=tabular.SPARSE_PRIOR)
    spaces = Spaces(STATES, ACTIONS, True, None, None, support=2)
    state = psrl_paper.init(jax.random.key(0), config, spaces)._replace(belief=learned(spaces))
    draw = jax.jit(lambda key: tabular.sample(key, config.prior, state.belief, config.discount, support=2))
    assert_solved(oracle, draw, jax.jit(lambda key, state: psrl_paper.plan(key, config, spaces, state)), state, spaces)


@pytest.fixture
def draw(monkeypatch):
    """MDPs that are drawn, and compiled, in no time; their rows are almost deterministic, so that they mix slowly."""

    def sample(key, prior, belief, discount, start=None, support=None):
        del prior, belief, start, support
        row_key, reward_key = jax.random.split(key)
        rows = jax.nn.softmax(5 * jax.random.normal(row_key, (STATES, ACTIONS, STATES)))
        reward = jax.random.normal(reward_key, (STATES, ACTIONS))
        return TabularMDP(rows, reward, jnp.zeros_like(reward), jnp.full(STATES, 0.25), jnp.asarray(discount))

    monkeypatch.setattr(tabular, "sample", sample)
    return lambda key: sample(key, None, None, 0.9)


@pytest.fixture
def state(draw):
    del draw
    return psrl_paper.init(jax.random.key(0), CONFIG, SPACES)


def plan_with(config):
    return jax.jit(lambda key, state: psrl_paper.plan(key, config, SPACES, state))


def test_the_plan_solves_mdps_that_go_on_for_ever(oracle, draw, state):
    assert_solved(oracle, draw, plan_with(CONFIG), state, SPACES)


def test_tolerance_and_warm_start(state):
    plan = plan_with(CONFIG)
    after, tight = plan(jax.random.key(1), state)
    _, loose = plan_with(psrl_paper.Config(discount=0.9, tolerance=0.01))(jax.random.key(1), state)
    _, again = plan(jax.random.key(1), after)
    assert int(loose.iterations) < int(tight.iterations)
    assert int(again.iterations) < int(tight.iterations)
    # A hundredth of the span of values, which is 60; the middle of the bounds is twice as close.
    assert np.abs(loose.value_mean - tight.value_mean).max() <= 0.3


def test_update_act_and_policy():
    config, spaces = CONFIG, SPACES._replace(terminates=True)
    state = psrl_paper.init(jax.random.key(0), config, spaces)._replace(actions=jnp.asarray([1, 0, 1, 1]))
    step = Transition(jnp.asarray(1), jnp.asarray(1), jnp.asarray(0.5), jnp.asarray(3), jnp.asarray(True))
    after = psrl_paper.update(config, state, step)
    assert int(after.belief.counts.sum()) == int(after.belief.counts[1, 1, STATES]) == 1
    assert float(after.belief.rewards.mean[1, 1]) == 0.5
    np.testing.assert_array_equal(after.actions, state.actions)
    np.testing.assert_array_equal(psrl_paper.policy(config, after), np.eye(2)[[1, 0, 1, 1]])
    assert [int(psrl_paper.act(jax.random.key(0), config, after, jnp.asarray(one))) for one in range(4)] == [1, 0, 1, 1]


def test_untrained_actions_are_spread_out(key, check):
    spaces = Spaces(500, 2, False, 0.0, 1.0)
    actions = jax.jit(lambda one: psrl_paper.init(one, psrl_paper.Config(), spaces).actions)(key)
    check.frequencies(np.bincount(actions, minlength=2), np.ones(2))


@pytest.mark.parametrize("choices", [{"discount": 0.0}, {"discount": 1.0}, {"tolerance": 0.0}, {"tolerance": -1.0}])
def test_wrong_settings(choices):
    with pytest.raises(UserError, match=next(iter(choices))):
        psrl_paper.Config(**choices)
