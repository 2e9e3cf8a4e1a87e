"""Multi-MDP backwards induction against a NumPy one, and as a special case of BBI."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError
from bellief.agents import bbi_sampled, mmbi
from bellief.beliefs import tabular
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.types import Spaces, Transition

STATES, ACTIONS, MDPS, HORIZON = 4, 3, 5, 7
SPACES = Spaces(STATES, ACTIONS, True, -3.0, 3.0)
CONFIG = mmbi.Config(horizon=HORIZON, discount=0.9, mdps=MDPS)


@pytest.fixture(scope="module")
def belief():
    generator = np.random.default_rng(1)
    transitions = Transition(
        jnp.asarray(generator.integers(0, STATES, 60)),
        jnp.asarray(generator.integers(0, ACTIONS, 60)),
        jnp.asarray(generator.normal(size=60), jnp.float32),
        jnp.asarray(generator.integers(0, STATES, 60)),
        jnp.asarray(generator.random(60) < 0.2),
    )
    return tabular.update_batch(tabular.init(STATES, ACTIONS, True), transitions)


@pytest.fixture(scope="module")
def redraw(belief):
    """The MDPs that a plan with this key draws."""

    @jax.jit
    def draw(key):
        keys = jax.random.split(jax.random.split(key)[0], MDPS)
        return jax.vmap(lambda one: tabular.sample(one, CONFIG.prior, belief, CONFIG.discount))(keys)

    return lambda key: jax.tree.map(lambda field: np.asarray(field, np.float64), draw(key))


def by_loops(mdps):
    """Every action scored by its mean over the MDPs; every MDP backed up under the common choice."""
    values = [[0.0] * STATES for _ in range(MDPS)]
    for _ in range(HORIZON):
        new, actions = [[0.0] * STATES for _ in range(MDPS)], []
        for state in range(STATES):
            quality = np.zeros((ACTIONS, MDPS))
            for action in range(ACTIONS):
                for j in range(MDPS):
                    later = sum(mdps.transition[j, state, action, t] * values[j][t] for t in range(STATES))
                    quality[action, j] = mdps.reward[j, state, action] + 0.9 * later
            actions.append(int(quality.mean(1).argmax()))
            for j in range(MDPS):
                new[j][state] = quality[actions[-1], j]
        values = new
    return actions, np.array(values)


def test_against_loops(belief, redraw):
    plan = jax.jit(lambda key: mmbi.plan(key, CONFIG, SPACES, mmbi.State(belief, jnp.zeros(STATES, jnp.int32))))
    for seed in range(5):
        key = jax.random.key(seed)
        state, info = plan(key)
        actions, values = by_loops(redraw(key))
        np.testing.assert_array_equal(state.actions, actions)
        np.testing.assert_allclose(info.value_mean, values.mean(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(info.value_sd, values.std(0), rtol=1e-4, atol=1e-5)


@pytest.fixture
def sample(monkeypatch):
    """MDPs that are drawn, and compiled, in no time."""

    def easy(key, prior, belief, discount, start=None, support=None):
        del prior, belief, start, support
        row_key, reward_key = jax.random.split(key)
        rows = jax.nn.softmax(jax.random.normal(row_key, (STATES, ACTIONS, STATES + 1)))
        reward = jax.random.normal(reward_key, (STATES, ACTIONS))
        return TabularMDP(rows[..., :STATES], reward, rows[..., STATES], jnp.full(STATES, 0.25), jnp.asarray(discount))

    monkeypatch.setattr(tabular, "sample", easy)
    return easy


def test_one_mdp_is_its_optimal_finite_horizon_plan(belief, sample):
    config = mmbi.Config(horizon=HORIZON, discount=0.9, mdps=1)
    key = jax.random.key(9)
    first = mmbi.State(belief, jnp.zeros(STATES, jnp.int32))
    state, info = jax.jit(lambda key: mmbi.plan(key, config, SPACES, first))(key)
    mdp = jax.tree.map(np.asarray, sample(jax.random.split(jax.random.split(key)[0], 1)[0], None, None, 0.9))
    values = np.zeros(STATES)
    for _ in range(HORIZON):
        quality = mdp.reward + 0.9 * mdp.transition @ values
        values = quality.max(1)
    np.testing.assert_array_equal(state.actions, quality.argmax(1))
    np.testing.assert_allclose(info.value_mean, values, rtol=1e-4)
    np.testing.assert_array_equal(info.value_sd, 0)


@pytest.mark.usefixtures("sample")
def test_bbi_with_the_joint_belief_and_the_mean_rule_is_the_same(belief):
    settings = bbi_sampled.Config(horizon=HORIZON, discount=0.9, mdps=MDPS, values="joint", rule="mean")
    nothing = jnp.zeros(STATES, jnp.int32)
    of_mmbi = jax.jit(lambda key: mmbi.plan(key, CONFIG, SPACES, mmbi.State(belief, nothing)))
    of_bbi = jax.jit(lambda key: bbi_sampled.plan(key, settings, SPACES, bbi_sampled.State(belief, nothing)))
    for seed in range(5):
        first, first_info = of_mmbi(jax.random.key(seed))
        second, second_info = of_bbi(jax.random.key(seed))
        np.testing.assert_array_equal(first.actions, second.actions)
        np.testing.assert_allclose(first_info.value_mean, second_info.value_mean, rtol=1e-5)
        np.testing.assert_allclose(first_info.value_sd, second_info.value_sd, rtol=1e-4, atol=1e-6)


def test_update_act_and_policy():
    state = mmbi.init(jax.random.key(0), CONFIG, SPACES)._replace(actions=jnp.asarray([2, 0, 1, 2]))
    step = Transition(jnp.asarray(1), jnp.asarray(2), jnp.asarray(0.5), jnp.asarray(3), jnp.asarray(False))
    after = mmbi.update(CONFIG, state, step)
    assert int(after.belief.counts.sum()) == int(after.belief.counts[1, 2, 3]) == 1
    assert float(after.belief.rewards.mean[1, 2]) == 0.5
    np.testing.assert_array_equal(mmbi.policy(CONFIG, after), np.eye(3)[[2, 0, 1, 2]])
    assert [int(mmbi.act(jax.random.key(0), CONFIG, after, jnp.asarray(one))) for one in range(4)] == [2, 0, 1, 2]


@pytest.mark.parametrize("choices", [{"discount": 0.0}, {"discount": 1.1}, {"horizon": 0}, {"mdps": 0}])
def test_wrong_settings(choices):
    with pytest.raises(UserError, match=next(iter(choices))):
        mmbi.Config(**choices)
