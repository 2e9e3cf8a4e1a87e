"""All pi_i and psi_i of Algorithm 3, plans of a problem that ends after T steps, histogram beliefs in control."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError, fast
from bellief.agents import bbi_every_step, bbi_paper, bbi_sampled
from bellief.beliefs import normal_gamma, tabular
from bellief.envs import make
from bellief.induction import bayes_optimal, method1
from bellief.types import Transition

pytestmark = pytest.mark.long

LIFETIME, DISCOUNT = 6, 0.9
# Forward pays late: with few steps to go *back* is best everywhere but at the end, with many it is not.
WORLD = make("nchain", small_reward=1.0, slip=0.1)
plan = jax.jit(bbi_sampled.plan, static_argnums=(1, 2))


def optimal_by_step(environment, steps):
    """Backwards induction by loops: actions and values of each state, for 1 to `steps` steps to go."""
    model = environment.mdp(DISCOUNT)
    values, rows = np.zeros(5), []
    for _ in range(steps):
        quality = np.array(model.reward, float)
        for state, action, following in np.ndindex(5, 2, 5):
            quality[state, action] += DISCOUNT * model.transition[state, action, following] * values[following]
        assert np.abs(quality[:, 0] - quality[:, 1]).min() > 0.02
        values = quality.max(1)
        rows.append((quality.argmax(1), values))
    return [np.stack(column) for column in zip(*rows, strict=True)]


def certain(environment, lifetime, amount=1_000_000):
    """An agent's state that is certain of the MDP, before its first step."""
    mdp = environment.mdp()
    rewards = normal_gamma.Statistics(
        jnp.full(mdp.reward.shape, amount, jnp.int32), jnp.float32(mdp.reward), jnp.float32(amount * mdp.reward_sd**2)
    )
    counts = jnp.asarray(np.round(amount * np.asarray(mdp.transition)), jnp.int32)
    return bbi_sampled.State(tabular.TabularBelief(counts, rewards), jnp.zeros((lifetime, 5), jnp.int32))


def test_every_step_is_the_optimum_of_a_known_mdp_with_so_many_steps_to_go():
    one = WORLD.mdp(DISCOUNT)
    mdps = jax.tree.map(lambda leaf: jnp.float32(leaf)[None], one)
    settings = method1.Settings(samples=8, utility_samples=2)
    found = bbi_every_step.induce(
        jax.random.key(0), settings, LIFETIME, mdps, jnp.zeros((1, 5)), jnp.float32(1.0), bbi_paper.mean_q
    )
    actions, values = optimal_by_step(WORLD, LIFETIME)
    assert len(np.unique(actions, axis=0)) > 2  # a stationary policy would not do
    np.testing.assert_array_equal(found.actions, actions)
    np.testing.assert_allclose(found.beliefs.mean, values, rtol=1e-5)
    np.testing.assert_allclose(found.info.value_mean, values[-1], rtol=1e-5)


@pytest.mark.parametrize("values", ["gaussian", "histogram"])
def test_the_last_row_is_the_usual_plan(values):
    worlds = [make("nchain", slip=slip).mdp(discount=DISCOUNT) for slip in (0.1, 0.2, 0.3)]
    mdps = jax.tree.map(lambda *leaves: jnp.float32(leaves), *worlds)
    settings = method1.Settings(values, samples=10, utility_samples=3)
    given = (jax.random.key(1), settings, 5, mdps, np.zeros((3, 5), np.float32), jnp.float32(5.0), bbi_paper.mean_q)
    every, (actions, info) = bbi_every_step.induce(*given), bbi_paper.induce(*given)
    np.testing.assert_array_equal(every.actions[-1], actions)
    np.testing.assert_array_equal(every.info.value_mean, info.value_mean)
    with fast.enabled("cpu"):
        again, quick = bbi_paper.induce(*given)
    np.testing.assert_array_equal(again, actions)
    np.testing.assert_allclose(quick.value_mean, info.value_mean, rtol=1e-4)


@pytest.mark.parametrize("values", ["gaussian", "histogram", "joint"])
def test_an_agent_follows_the_plan_for_the_steps_that_are_left(values):
    config = bbi_sampled.Config(values=values, discount=DISCOUNT, mdps=2, samples=10, lifetime=LIFETIME)
    state, _ = plan(jax.random.key(0), config, WORLD.spaces(), certain(WORLD, LIFETIME))
    expected, _ = optimal_by_step(WORLD, LIFETIME)
    np.testing.assert_array_equal(state.actions, expected)
    # As if nothing had been seen yet: the number of observations tells how many steps are past.
    state = state._replace(belief=tabular.init(5, 2))
    step = Transition(*map(jnp.asarray, (0, 1, 0.0, 1, False)))
    for passed in range(LIFETIME):
        row = expected[LIFETIME - 1 - passed]
        assert [int(bbi_sampled.act(None, config, state, place)) for place in range(5)] == row.tolist()
        np.testing.assert_array_equal(bbi_sampled.policy(config, state), np.eye(2)[row])
        state = bbi_sampled.update(config, state, step)
    after = bbi_sampled.update(config, state, step)  # beyond the end the last step's actions are kept
    np.testing.assert_array_equal(bbi_sampled.policy(config, after), np.eye(2)[expected[0]])


def test_before_the_first_plan_a_lifetime_has_actions():
    config = bbi_sampled.Config(lifetime=4)
    assert bbi_sampled.init(jax.random.key(0), config, WORLD.spaces()).actions.shape == (4, 5)


@pytest.mark.parametrize("choices", [{"lifetime": 0}, {"lifetime": 5, "final": "own"}])
def test_wrong_lifetimes(choices):
    with pytest.raises(UserError, match="lifetime"):
        bbi_sampled.Config(**choices)


def test_the_value_span_of_a_lifetime_without_discount():
    config = bbi_sampled.Config(discount=1.0, lifetime=7).paper()
    assert config.horizon == 7


@pytest.mark.slow
def test_looking_ahead_to_the_end_is_at_most_bayes_optimal():
    """The exact optimum bounds the agent's Bayesian value from above, by enumeration of all beliefs."""
    from bellief.experiments.bayesian import bayesian_returns

    problem = bayes_optimal.from_rewards([[0.4, 0.0], [1.0, 1.0]], concentration=0.5, discount=0.95)
    runs = 2_000
    for horizon in (2, 5):
        found = bayesian_returns(problem, "bbi-paper", horizon, runs, {"lifetime": horizon})[:, -1]
        optimum, error = bayes_optimal.solve(problem, horizon).value, found.std() / np.sqrt(runs)
        assert 0.9 * optimum < found.mean() < optimum + 4.5 * error
