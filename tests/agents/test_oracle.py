"""The oracle earns the most that can be earned."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bellief
from bellief import UserError
from bellief.agents import oracle as agent
from bellief.envs import make
from bellief.mdp.bellman import long_run_average
from bellief.types import Spaces, Transition

# Largest average rewards per step.
OPTIMUM = {"nchain": 3.6768, "doubleloop": 0.4, "lavalake": 2.6774, "lavalake10": 1.3880, "maze": 0.09422}


@pytest.mark.parametrize(
    "name", [*(name for name in OPTIMUM if name != "maze"), pytest.param("maze", marks=pytest.mark.slow)]
)
def test_best_average_reward(name):
    environment = make(name)
    model = environment.mdp()
    config = agent.informed(agent.Config(), model)
    state = agent.init(jax.random.key(0), config, environment.spaces())
    policy = agent.policy(config, state)
    assert policy.shape == (environment.states, environment.actions)
    assert long_run_average(model, policy) == pytest.approx(OPTIMUM[name], rel=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_best_of_all_policies(oracle, seed):
    mdp = oracle.random_mdp(seed, 4, 3)
    actions = agent.informed(agent.Config(), mdp).actions
    gains = {choice: long_run_average(mdp, np.eye(3)[list(choice)]) for choice in itertools.product(range(3), repeat=4)}
    assert gains[actions] == pytest.approx(max(gains.values()), rel=1e-6)
    # At a low discount the future counts for nothing, and the largest reward is best.
    assert agent.informed(agent.Config(discount=1e-9), mdp).actions == tuple(mdp.reward.argmax(1))


def test_a_run_follows_the_policy(check):
    result = bellief.run("nchain", "oracle", 4000, 10)
    np.testing.assert_allclose(result.gain, 3.6768, rtol=1e-4)
    # The start, far from the large reward, costs a little: the bias of the best policy is below 40.
    check.mean(result.average_reward, np.array(3.6768), slack=40 / 4000)


def test_nothing_is_learned():
    config = agent.Config(actions=(1, 0))
    spaces = Spaces(2, 3, False, 0.0, 1.0)
    state = agent.init(jax.random.key(0), config, spaces)
    step = Transition(jnp.asarray(0), jnp.asarray(1), jnp.asarray(9.0), jnp.asarray(1), jnp.asarray(False))
    assert agent.update(config, state, step) is state
    assert agent.plan(jax.random.key(0), config, spaces, state)[0] is state
    assert [int(agent.act(jax.random.key(0), config, state, jnp.asarray(one))) for one in (0, 1)] == [1, 0]
    np.testing.assert_array_equal(agent.policy(config, state), np.eye(3)[[1, 0]])


def test_it_must_know_the_model():
    with pytest.raises(UserError, match="'oracle' must be told the model, and 'FrozenLake-v1' has none"):
        bellief.run("FrozenLake-v1", "oracle", 10, 1)
    with pytest.raises(UserError, match="model is known"):
        agent.init(jax.random.key(0), agent.Config(), Spaces(2, 2, False, 0.0, 1.0))


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_wrong_settings(discount):
    with pytest.raises(UserError, match="discount"):
        agent.Config(discount=discount)
