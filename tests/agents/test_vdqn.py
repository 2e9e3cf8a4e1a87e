import dataclasses
from types import SimpleNamespace

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from bellief import UserError
from bellief.agents import vdqn
from bellief.envs import make
from bellief.experiments import compiled_environments, compiled_loop, compiled_steps, event_loop
from bellief.mdp.tabular_mdp import make_outcomes
from bellief.types import Spaces, Transition

pytestmark = pytest.mark.long

SPACES = Spaces(3, 2, terminates=True, reward_low=-1.0, reward_high=1.0)
SMALL = vdqn.Config(hidden_layers=2, width=4, batch=8, warm_up=5, buffer=10, target_steps=4, initial_sd=0.3)
update = jax.jit(vdqn.update, static_argnums=0)


def steps_of(count, seed=0, ends=True):
    generator = np.random.default_rng(seed)
    return Transition(
        jnp.asarray(generator.integers(3, size=count), jnp.int32),
        jnp.asarray(generator.integers(2, size=count), jnp.int32),
        jnp.asarray(generator.normal(size=count), jnp.float32),
        jnp.asarray(generator.integers(3, size=count), jnp.int32),
        jnp.asarray(ends & (generator.random(count) < 0.3)),
    )


def one_of(steps, number):
    return Transition(*(field[number] for field in steps))


def same(first, second):
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.usefixtures("double")
def test_gradient_against_finite_differences():
    state = vdqn.init(jax.random.key(0), SMALL, SPACES)
    # Spreads that differ, so that no derivative can stand in for another.
    vector, restore = jax.flatten_util.ravel_pytree(jax.tree.map(lambda leaf: leaf.astype(float), state.weights))
    vector = vector + 0.1 * jax.random.normal(jax.random.key(1), vector.shape, vector.dtype)
    batch, goals = steps_of(8), jnp.linspace(-1.0, 2.0, 8)
    known = jnp.asarray(37)

    def loss(vector):
        return vdqn.negative_bound(restore(vector), jax.random.key(2), SMALL, batch, goals, known)

    distance = 1e-6
    moves = distance * jnp.eye(len(vector))
    differences = jax.jit(jax.vmap(lambda move: (loss(vector + move) - loss(vector - move)) / (2 * distance)))(moves)
    gradient = jax.jit(jax.grad(loss))(vector)
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-6)
    # Only spreads of pairs that no batch contains would be without a likelihood; all have a prior.
    assert (np.abs(gradient) > 1e-8).all()


@pytest.mark.usefixtures("double")
def test_loss_by_hand():
    """One linear layer: the expected squared error has a closed form, and so has its mean over many weight draws."""
    config = dataclasses.replace(SMALL, hidden_layers=0, noise=0.7, prior_sd=1.3)
    weights = jax.tree.map(lambda leaf: leaf.astype(float), vdqn.init(jax.random.key(0), config, SPACES).weights)
    batch, goals, known = steps_of(8), np.linspace(-1.0, 2.0, 8), 20
    (mean,), (log_sd,) = weights
    error = 0.0
    for state, action, goal in zip(batch.state, batch.action, goals, strict=True):
        centre = mean.weight[state, action] + mean.bias[action]
        variance = np.exp(2 * log_sd.weight[state, action]) + np.exp(2 * log_sd.bias[action])
        error += ((centre - goal) ** 2 + variance) / (2 * 0.7**2) / 8
    divergence = 0.0
    for centre, spread in zip(np.ravel(mean.weight), np.exp(np.ravel(log_sd.weight)), strict=True):
        law, prior = stats.norm(centre, spread), stats.norm(0, 1.3)
        divergence += integrate.quad(
            lambda x, law=law, prior=prior: law.pdf(x) * (law.logpdf(x) - prior.logpdf(x)),
            centre - 9 * spread,
            centre + 9 * spread,
        )[0]
    for centre, spread in zip(mean.bias, np.exp(log_sd.bias), strict=True):
        divergence += np.log(1.3 / spread) + (spread**2 + centre**2) / (2 * 1.3**2) - 0.5
    assert float(vdqn.divergence(weights, 1.3)) == pytest.approx(float(divergence), rel=1e-8)
    losses = jax.jit(
        jax.vmap(lambda key: vdqn.negative_bound(weights, key, config, batch, jnp.asarray(goals), jnp.asarray(known)))
    )(jax.random.split(jax.random.key(0), 20_000))
    reach = 4.5 * np.std(losses) / np.sqrt(20_000)
    assert abs(np.mean(losses) - error - divergence / known) < reach


def test_values_are_those_of_drawn_weights(key, check):
    state = vdqn.init(jax.random.key(3), SMALL, SPACES)
    draw = jax.jit(jax.vmap(lambda one: vdqn.sample_values(one, state.weights, jnp.asarray([1]))[0]))
    values = np.asarray(draw(jax.random.split(key, 5_000)))

    generator = np.random.default_rng(0)
    drawn = []
    for _ in range(5_000):
        signal = np.eye(3)[1]
        for number, (mean, log_sd) in enumerate(zip(*state.weights, strict=True)):
            weight, bias = (
                generator.normal(centre, np.exp(spread)) for centre, spread in zip(mean, log_sd, strict=True)
            )
            signal = (np.maximum(signal, 0) if number else signal) @ weight + bias
        drawn.append(signal)
    drawn = np.array(drawn)
    check.same_laws(values[:, 0], drawn[:, 0])
    # The two actions share hidden units: their difference is what chooses.
    check.same_laws(values[:, 0] - values[:, 1], drawn[:, 0] - drawn[:, 1])
    act = jax.jit(jax.vmap(lambda one: vdqn.act(one, SMALL, state, jnp.asarray(1))))
    actions = np.asarray(act(jax.random.split(key, 5_000)))
    np.testing.assert_array_equal(actions, values.argmax(1))
    assert set(actions) == {0, 1}


def test_each_transition_has_its_own_draw():
    state = vdqn.init(jax.random.key(3), SMALL, SPACES)
    values = vdqn.sample_values(jax.random.key(0), state.weights, jnp.zeros(6, jnp.int32))
    assert len(np.unique(values[:, 0])) == 6


@pytest.mark.slow
def test_a_linear_network_finds_the_exact_posterior(check):
    config = vdqn.Config(
        hidden_layers=0, discount=0.0, noise=0.5, prior_sd=0.8, learning_rate=3e-3, batch=64, buffer=40, initial_sd=0.1
    )
    data = steps_of(40, seed=5)
    expected_mean, expected_sd = [], []
    for action in range(2):
        rows = np.asarray(data.action) == action
        features = np.concatenate([np.eye(3)[np.asarray(data.state)[rows]], np.ones((rows.sum(), 1))], axis=1)
        precision = features.T @ features / 0.5**2 + np.eye(4) / 0.8**2
        expected_mean.append(np.linalg.solve(precision, features.T @ np.asarray(data.reward)[rows] / 0.5**2))
        expected_sd.append(1 / np.sqrt(np.diag(precision)))

    def train(key):
        state = vdqn.init(key, config, SPACES)

        def one_step(carry, number):
            weights, optimiser = carry
            weights, optimiser, _ = vdqn.learn(
                jax.random.fold_in(key, number), config, weights, state.target, optimiser, data, jnp.asarray(40)
            )
            return (weights, optimiser), weights

        carry, _ = jax.lax.scan(one_step, (state.weights, state.optimiser), jnp.arange(3_000))
        # The last steps wander about the optimum; their average does not.
        return jax.tree.map(lambda leaves: leaves.mean(0), jax.lax.scan(one_step, carry, 3_000 + jnp.arange(5_000))[1])

    found = jax.jit(jax.vmap(train))(jax.random.split(jax.random.key(0), 10))

    def columns(layer):
        return np.concatenate([layer.weight, layer.bias[:, None, :]], axis=1).transpose(0, 2, 1)

    # Beyond chance: how far Adam's steps of 0.003 leave the average from the optimum.
    check.mean(columns(found.mean[0]), np.array(expected_mean), slack=0.005)
    check.mean(columns(found.log_sd[0]), np.log(expected_sd), slack=0.02)


def test_targets():
    config = dataclasses.replace(SMALL, discount=0.5)
    state = vdqn.init(jax.random.key(3), config, SPACES)
    batch = steps_of(6)._replace(terminated=jnp.asarray([False, True] * 3))
    goals = vdqn.targets(jax.random.key(1), config, state.target, batch)
    later = np.asarray(vdqn.sample_values(jax.random.key(1), state.target, batch.next_state)).max(1)
    np.testing.assert_allclose(goals, np.asarray(batch.reward) + 0.5 * later * [1, 0, 1, 0, 1, 0], rtol=1e-6)


def test_warm_up_target_and_replay():
    data = steps_of(23)
    state = begin = vdqn.init(jax.random.key(0), SMALL, SPACES)
    for number in range(23):
        before, state = state, update(SMALL, state, one_of(data, number))
        assert int(state.steps) == number + 1
        assert same(state.weights, before.weights) == (number + 1 <= 5)
        assert same(state.optimiser, before.optimiser) == (number + 1 <= 5)
        assert same(state.target, state.weights if (number + 1) % 4 == 0 else before.target)
    assert not same(state.weights, begin.weights)
    # A ring of ten after 23 transitions: 20, 21, 22 have replaced 10, 11, 12.
    order = [20, 21, 22, *range(13, 20)]
    for kept, seen in zip(state.replay, data, strict=True):
        np.testing.assert_array_equal(kept, np.asarray(seen)[order])


def test_only_what_was_seen_is_replayed_in_its_scale():
    config = dataclasses.replace(SMALL, buffer=1_000, warm_up=0, reward_scale=0.25)
    state = vdqn.init(jax.random.key(0), config, SPACES)
    poisoned = state._replace(replay=state.replay._replace(reward=jnp.full(1_000, jnp.nan)))
    for number in range(20):
        poisoned = update(config, poisoned, one_of(steps_of(20), number))
    assert np.isfinite(poisoned.loss)
    assert np.isnan(poisoned.replay.reward[20:]).all()
    np.testing.assert_allclose(poisoned.replay.reward[:20], 0.25 * steps_of(20).reward, rtol=1e-6)


def test_policy_and_info_are_of_the_mean_weights():
    state = vdqn.init(jax.random.key(2), SMALL, SPACES)
    sure = state.weights._replace(log_sd=jax.tree.map(lambda leaf: jnp.full_like(leaf, -30.0), state.weights.log_sd))
    values = np.asarray(vdqn.sample_values(jax.random.key(0), sure, jnp.arange(3)))
    np.testing.assert_array_equal(vdqn.policy(SMALL, state), np.eye(2)[values.argmax(1)])
    after, info = vdqn.plan(jax.random.key(0), SMALL, SPACES, state)
    assert after is state
    np.testing.assert_allclose(info.value_mean, values.max(1), rtol=1e-5)


@pytest.mark.slow
def test_with_and_without_jit():
    config = dataclasses.replace(SMALL, warm_up=0)
    state = vdqn.init(jax.random.key(0), config, SPACES)
    compiled = update(config, state, one_of(steps_of(1), 0))
    with jax.disable_jit():
        plain = vdqn.update(config, state, one_of(steps_of(1), 0))
    for first, second, before in zip(*(jax.tree.leaves(one) for one in (compiled, plain, state)), strict=True):
        assert first.dtype == second.dtype == before.dtype
        assert first.shape == second.shape == before.shape
        # Adam's first step divides by the size of the gradient: a tiny one may lose its digits.
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-5)


def test_extreme_rewards_leave_everything_finite():
    def one_run(reward):
        data = steps_of(300)._replace(reward=jnp.full(300, reward, jnp.float32))
        state = vdqn.init(jax.random.key(0), SMALL, SPACES)
        return jax.lax.scan(lambda now, one: (vdqn.update(SMALL, now, one), None), state, data)[0]

    for leaf in jax.tree.leaves(jax.jit(jax.vmap(one_run))(jnp.asarray([1e-6, -1e6, 1e6, 0.0], jnp.float32))):
        assert np.isfinite(leaf).all()


def run(environment, config, steps, readings, runs=4):
    keys = jax.vmap(lambda number: compiled_steps.run_keys(0, environment.name, "vdqn", number))(np.arange(runs))
    *events, last = compiled_loop.run_batch(
        keys,
        compiled_environments.make_tables(environment.outcomes),
        vdqn,
        config,
        environment.spaces(),
        [1],
        readings,
        100.0,
    )
    return [event.total for event in events if isinstance(event, event_loop.Reading)], last.agent


def test_learns_which_arm_pays():
    rewards = np.array([0.0, 1.0, 0.5])
    outcomes = make_outcomes(np.ones((1, 3, 1)), np.zeros((1, 3, 1), int), rewards[None, :, None], [1.0])
    bandit = SimpleNamespace(name="bandit", outcomes=outcomes, spaces=lambda: Spaces(1, 3, False, 0.0, 1.0))
    config = vdqn.Config(width=8, discount=0.5, batch=16, warm_up=50, buffer=500, initial_sd=0.3, learning_rate=1e-2)
    (early, late), state = run(bandit, config, 1_000, [500, 1_000])
    # Random actions earn a half.
    assert ((late - early) / 500 > 0.9).all()
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda one: vdqn.policy(config, one)))(state), np.eye(3)[[[1]] * 4])
    # Q = r + 0.5 * 2
    info = jax.jit(jax.vmap(lambda one: vdqn.plan(jax.random.key(0), config, None, one)[1]))(state)
    np.testing.assert_allclose(info.value_mean, 2.0, atol=0.3)


@pytest.mark.slow
def test_published_network_on_nchain():
    (total,), state = run(make("nchain"), vdqn.Config(), 1_500, [1_500])
    # Random actions earn about 1.3.
    assert total.mean() / 1_500 > 1.5
    np.testing.assert_array_equal(state.steps, 1_500)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"hidden_layers": -1}, "hidden_layers"),
        ({"width": 0}, "width"),
        ({"batch": 0}, "batch"),
        ({"buffer": 0}, "buffer"),
        ({"target_steps": 0}, "target_steps"),
        ({"warm_up": -1}, "warm_up"),
        ({"discount": 1.5}, "discount"),
        ({"noise": 0.0}, "noise"),
        ({"initial_sd": 0.0}, "initial_sd"),
        ({"prior_sd": 0.0}, "prior_sd"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"reward_scale": 0.0}, "reward_scale"),
    ],
)
def test_wrong_settings(choices, message):
    with pytest.raises(UserError, match=message):
        vdqn.Config(**choices)
