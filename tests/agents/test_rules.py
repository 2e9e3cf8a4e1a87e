import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.agents import bbi_sampled, rules
from bellief.errors import UserError

SAMPLES, STATES, ACTIONS = 8, 2, 3
MASS = np.array([1, 2, 4, 1, 2, 2, 3, 1]) / 16


@pytest.fixture(scope="module")
def q_samples():
    return np.random.default_rng(0).normal(size=(SAMPLES, STATES, ACTIONS)).astype(np.float32)


def single(array):
    return jnp.asarray(array, jnp.float32)


def test_mean(q_samples):
    expected = sum(mass * sample for mass, sample in zip(MASS, q_samples, strict=True))
    np.testing.assert_allclose(rules.mean(q_samples, single(MASS)), expected, atol=1e-6)


@pytest.mark.parametrize("optimism", [0.0, 1.0, -0.5])
def test_optimistic_in_standard_deviations(q_samples, optimism):
    mean = np.average(q_samples, axis=0, weights=MASS)
    spread = np.sqrt(np.average((q_samples - mean) ** 2, axis=0, weights=MASS))
    scores = rules.optimistic(q_samples, single(MASS), optimism, None)
    np.testing.assert_allclose(scores, mean + optimism * spread, atol=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_optimistic_by_quantile(q_samples, level):
    expected = np.zeros((STATES, ACTIONS))
    for pair in np.ndindex(STATES, ACTIONS):
        order = np.argsort(q_samples[:, *pair])
        reached = np.cumsum(MASS[order]) >= level
        expected[pair] = q_samples[order[reached.argmax()], *pair]
    np.testing.assert_array_equal(rules.optimistic(q_samples, single(MASS), 5.0, level), expected)


@pytest.mark.parametrize("tail", [1 / 16, 0.25, 1.0])
def test_cautious(q_samples, tail):
    expected = np.zeros((STATES, ACTIONS))
    for pair in np.ndindex(STATES, ACTIONS):
        # Every sample repeated sixteen times its mass makes equal ones, the worst of which are averaged.
        equal = np.sort(np.repeat(q_samples[:, *pair], np.round(16 * MASS).astype(int)))
        expected[pair] = equal[: round(16 * tail)].mean()
    np.testing.assert_allclose(rules.cautious(q_samples, single(MASS), tail), expected, atol=1e-6)


@pytest.mark.parametrize("name", rules.RULES)
def test_every_rule_has_a_score_for_each_pair(q_samples, name):
    config = bbi_sampled.Config(rule=name)
    scores = bbi_sampled.score(jax.random.key(0), config, jnp.asarray(q_samples), single(MASS))
    assert scores.shape == (STATES, ACTIONS)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", ["mean", "thompson", "optimistic", "cautious"])
def test_scores_rise_with_the_values(q_samples, name):
    config = bbi_sampled.Config(rule=name)
    scores = bbi_sampled.score(jax.random.key(0), config, jnp.asarray(q_samples), single(MASS))
    higher = bbi_sampled.score(jax.random.key(0), config, jnp.asarray(q_samples) + 3, single(MASS))
    np.testing.assert_allclose(higher, scores + 3, atol=1e-5)


def test_a_rule_in_the_table_is_an_agents_choice(q_samples, monkeypatch):
    monkeypatch.setitem(rules.RULES, "first", lambda key, q_samples, mass, config: q_samples[0])
    config = bbi_sampled.Config(rule="first")
    scores = bbi_sampled.score(jax.random.key(0), config, jnp.asarray(q_samples), single(MASS))
    np.testing.assert_array_equal(scores, q_samples[0])


def test_a_rule_with_scores_of_another_shape_is_named(q_samples, monkeypatch):
    monkeypatch.setitem(rules.RULES, "best", lambda key, q_samples, mass, config: q_samples[0].max(-1))
    with pytest.raises(UserError, match="action rule 'best' returns scores of shape"):
        bbi_sampled.score(jax.random.key(0), bbi_sampled.Config(rule="best"), jnp.asarray(q_samples), single(MASS))


def test_one_draw_takes_a_whole_sample_by_its_mass(key, check, q_samples):
    draw = jax.jit(jax.vmap(lambda one: rules.one_draw(one, jnp.asarray(q_samples), single(MASS))))
    draws = np.asarray(draw(jax.random.split(key, 20_000)))
    same = (draws[:, None] == q_samples).all((2, 3))
    assert (same.sum(1) == 1).all()
    check.frequencies(same.sum(0), MASS)


def test_argmax_breaks_ties_evenly(key, check):
    scores = single([[1.0, 3.0, 3.0, 0.0, 3.0], [2.0, 2.0, 2.0, 2.0, 2.0], [0.0, -1.0, -1.0, -1.0, -5.0]])
    actions = np.asarray(jax.jit(jax.vmap(lambda one: rules.argmax(one, scores)))(jax.random.split(key, 20_000)))
    for state, probabilities in enumerate(([0, 1, 1, 0, 1], [1] * 5, [1, 0, 0, 0, 0])):
        check.frequencies(np.bincount(actions[:, state], minlength=5), probabilities)
    # States do not share a lottery ticket.
    pairs = np.bincount(5 * actions[:, 0] + actions[:, 1], minlength=25)
    check.frequencies(pairs, np.outer([0, 1, 1, 0, 1], np.ones(5)).ravel())


def test_argmax_of_negative_scores():
    scores = single([[-5.0, -3.0, -4.0]])
    assert rules.argmax(jax.random.key(0), scores).tolist() == [1]
