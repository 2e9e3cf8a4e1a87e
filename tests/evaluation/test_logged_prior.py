"""The default prior: in the log's own units, and the reward's dependence on the next state where there is one."""

import jax
import numpy as np
import pytest

from bellief.beliefs import outcomes
from bellief.errors import UserError
from bellief.evaluation import evaluate
from bellief.evaluation.dense_belief import belief_from
from bellief.evaluation.logged_prior import (
    OLD,
    even_name,
    even_prior,
    logged_prior,
    read_prior,
    reward_scales,
    widening,
)
from bellief.evaluation.problem import prepare
from bellief.evaluation.sampled import SampledMDPs
from bellief.logs import Transitions


def table(seed=0, outcomes=1.0, noise=0.5, steps=4000):
    """Rewards made of a part of the pair, a part of the outcome and noise, each of known variance."""
    rng = np.random.default_rng(seed)
    state, action, following = (rng.integers(0, size, steps) for size in (20, 5, 4))
    pair, outcome = rng.normal(0, 3.0, (20, 5)), rng.normal(0, outcomes, (20, 5, 4))
    reward = pair[state, action] + outcome[state, action, following] + rng.normal(0, noise, steps)
    return state, action, reward, following


def test_scales():
    scales = reward_scales(Transitions.from_arrays(*table(), states=20, actions=5).statistics())
    assert scales.noise == pytest.approx(0.25, rel=0.1)
    assert scales.outcomes == pytest.approx(1.0, rel=0.25)
    assert scales.pairs == pytest.approx(9.25, rel=0.35)
    alike = reward_scales(Transitions.from_arrays(*table(outcomes=0.0), states=20, actions=5).statistics())
    assert alike.outcomes < 0.02


def test_a_scale_from_few_numbers_is_widened():
    assert [round(widening(degrees), 2) for degrees in (1, 3, 30)] == [42.03, 2.64, 1.09]
    assert widening(10**6) == pytest.approx(1, abs=1e-5)
    # Pairs pay 1, 2 and 6 on average, with two rewards of each that differ by 0.2.
    reward = np.array([0.9, 1.1, 1.9, 2.1, 5.9, 6.1])
    log = Transitions.from_arrays(np.repeat([0, 1, 2], 2), np.zeros(6, int), reward, np.zeros(6, int))
    scales = reward_scales(log.statistics())
    assert scales.location == pytest.approx(3)
    assert scales.pairs == pytest.approx(7 * (1 + 1 / 3) * widening(2))
    assert scales.noise == pytest.approx(0.02 * widening(3))
    assert scales.outcomes == pytest.approx(0.01)
    # Nothing seen twice: all of the variance may be noise. One pair only: others may differ by more than its rewards.
    once = reward_scales(Transitions.from_arrays([0, 0], [0, 0], [1.0, 3.0], [0, 1]).statistics())
    assert once.noise == pytest.approx(1)
    assert once.pairs == pytest.approx(widening(1))


def test_units_do_not_matter(policy, log):
    """Rewards times 7 plus 3: values times 7 plus 3 / (1 - discount), draw by draw."""
    moved = log | {"reward": 7 * log["reward"] + 3}
    first, second = (evaluate(Transitions.from_arrays(**one), policy, 0.9, draws=50).samples for one in (log, moved))
    np.testing.assert_allclose(second, 7 * first + 30, rtol=1e-8)


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_equal_rewards(value):
    columns = np.arange(6) % 3, np.zeros(6, int), np.full(6, value), (np.arange(6) + 1) % 3
    prior = logged_prior(Transitions.from_arrays(*columns))
    assert prior.reward_mean == value
    assert prior.reward_rate > 0
    assert np.isfinite(evaluate(Transitions.from_arrays(*columns), discount=0.9, draws=50).samples).all()


def test_a_prize_for_arriving_is_not_counted_twice(log):
    """Reward and value of the next state cancel here: every return is 1, and the default prior knows."""
    rng = np.random.default_rng(0)
    arrives = rng.random(400) < 0.5
    data = Transitions.from_arrays(np.zeros(400, int), np.zeros(400, int), arrives * 1.0, np.zeros(400, int), arrives)
    aware, unaware = (evaluate(data, discount=1.0, prior=prior).interval()[1][0] for prior in ("logged", "paper"))
    assert abs(aware - 1) < 0.02
    assert abs(unaware - 1) > 0.1


def test_names(data):
    assert read_prior("logged", data) == logged_prior(data)
    with pytest.raises(UserError, match="choose one of logged, "):
        read_prior("magic", data)


def test_numpy_draws_have_the_law_of_the_belief(check, log):
    """`SampledMDPs` against `beliefs.outcomes.sample`."""
    problem = prepare(Transitions.from_arrays(**log), 0.9, prior="logged-0.1")
    with jax.enable_x64(True):
        belief = belief_from(problem.log, problem.prior, problem.terminates)
        concentration = problem.prior.concentration(belief.counts.shape[-1])
        keys = jax.random.split(jax.random.key(0), 4000)
        mdps = jax.jit(jax.vmap(lambda key: outcomes.sample(key, concentration, belief, 0.9)))(keys)
    reward, first = np.empty((2, 4000, 3, 2))
    for draws, worlds in SampledMDPs(problem, 1, 4000).batches(np.ones(6, bool)):
        reward[draws] = worlds.reward.reshape(-1, 3, 2)
        first[draws] = worlds.expected(np.eye(3)[[0]].repeat(len(worlds.reward), 0)).reshape(-1, 3, 2)
    for pair in ((0, 0), (2, 1)):
        check.same_laws(reward[:, *pair], np.asarray(mdps.reward)[:, *pair])
        joint = reward[:, *pair] + first[:, *pair]
        check.same_laws(joint, np.asarray(mdps.reward[:, *pair] + mdps.transition[:, *pair, 0]))


def test_a_weight_is_part_of_the_name(data):
    assert read_prior("logged:0.5", data.tally()) == logged_prior(data, 0.5)
    assert read_prior("logged:0.1", data.tally()) == read_prior("logged", data.tally())
    for wrong in ("logged:", "logged:x", "logged:0", "logged:-1", "logged:inf", "logged:nan"):
        with pytest.raises(UserError, match="positive weight"):
            read_prior(wrong, data.tally())
    with pytest.raises(UserError, match="takes its scale from the log"):
        evaluate(data, prior="logged:0.5", reward_scale=2.0)
    assert even_name("logged:0.5") == f"{OLD}:0.5"
    assert even_name("paper") == "paper"
    assert read_prior(f"{OLD}:0.5", data.tally()) == even_prior(data, 0.5)
