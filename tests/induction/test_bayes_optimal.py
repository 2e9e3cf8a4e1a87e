"""Bayes-optimal values against a case worked out by hand, brute force over histories and over policies, and bounds."""

import itertools

import numpy as np
import pytest

from bellief.errors import UserError
from bellief.induction import bayes_optimal as exact

CHAIN = exact.from_rewards([[0.0, 0.2], [1.0, 0.5]], concentration=0.5, discount=0.9)
BANDITS = exact.bandit_chain(3, discount=0.95)


def by_histories(problem, steps, state, counts):
    """The same recursion, without keeping equal beliefs once, in plain Python."""
    if steps == 0:
        return 0.0
    best = -np.inf
    for action in range(problem.concentration.shape[1]):
        weight = problem.concentration[state, action] + counts[state, action]
        total = 0.0
        for outcome, share in enumerate(weight / weight.sum()):
            seen = counts.copy()
            seen[state, action, outcome] += 1
            later = by_histories(problem, steps - 1, int(problem.next_state[state, action, outcome]), seen)
            total += share * (problem.reward[state, action, outcome] + problem.discount * later)
        best = max(best, total)
    return best


def by_policies(problem, steps):
    """The best expected return over all policies that map histories to actions, each one evaluated."""
    _, actions, outcomes = problem.concentration.shape
    histories = [()]
    for length in range(1, steps):
        histories += list(itertools.product(range(outcomes), repeat=length))
    best = -np.inf
    for chosen in itertools.product(range(actions), repeat=len(histories)):
        policy = dict(zip(histories, chosen, strict=True))
        value = 0.0
        for path in itertools.product(range(outcomes), repeat=steps):
            state, counts, share, earned = 0, np.zeros(problem.concentration.shape), 1.0, 0.0
            for step, outcome in enumerate(path):
                action = policy[path[:step]]
                weight = problem.concentration[state, action] + counts[state, action]
                share *= weight[outcome] / weight.sum()
                earned += problem.discount**step * problem.reward[state, action, outcome]
                counts[state, action, outcome] += 1
                state = problem.next_state[state, action, outcome]
            value += share * earned
        best = max(best, value)
    return best


def test_a_bandit_by_hand():
    """Uniform priors: 1/2; then 2/3 after a success and 1/2 after a failure, by changing arms; three steps likewise.

    With three steps, after a success (2/3): stay, earn 2/3, and then 3/4 or, after a failure, 1/2: 2/3 + 2/3 3/4 + 1/3
    1/2 = 4/3. After a failure: the other arm, 1/2, then 2/3 or, after another failure, 1/3: 1. Together 1/2 + 1/2 4/3 +
    1/2 = 5/3.
    """
    bandit = exact.bernoulli_bandit(2)
    assert exact.solve(bandit, 1).value == pytest.approx(1 / 2)
    assert exact.solve(bandit, 2).value == pytest.approx(13 / 12)
    assert exact.solve(bandit, 3).value == pytest.approx(5 / 3)


@pytest.mark.parametrize("problem", [CHAIN, BANDITS, exact.bernoulli_bandit(3, 2.0, 1.0)])
@pytest.mark.parametrize("horizon", [1, 3, 5])
def test_brute_force_over_histories(problem, horizon):
    expected = by_histories(problem, horizon, 0, np.zeros(problem.concentration.shape))
    assert exact.solve(problem, horizon).value == pytest.approx(expected, abs=1e-12)


def test_brute_force_over_policies():
    assert exact.solve(CHAIN, 3).value == pytest.approx(by_policies(CHAIN, 3), abs=1e-12)


def test_values_by_horizon_are_those_of_each():
    expected = [exact.solve(CHAIN, horizon).value for horizon in range(1, 7)]
    np.testing.assert_allclose(exact.values_by_horizon(CHAIN, 6), expected, atol=1e-12)


def test_information_states_are_kept_once():
    """Two arms: the counts of h pulls are four numbers with sum h; sequences would be 4^h."""
    counted = exact.solve(exact.bernoulli_bandit(2), 6).information_states
    assert counted.tolist() == [(h + 1) * (h + 2) * (h + 3) // 6 for h in range(7)]


@pytest.mark.parametrize("problem", [CHAIN, BANDITS])
def test_bounds_are_in_order(problem):
    value = exact.solve(problem, 8).value
    blind = exact.evaluate(problem, 8, exact.mean_mdp_policy(problem, 8))
    learning = exact.evaluate(problem, 8, exact.certainty_equivalent(problem))
    bound = exact.hindsight_bound(problem, 8, mdps=20_000, seed=1)
    assert blind < learning + 1e-12
    assert learning <= value + 1e-12
    # One-sided at a rate of 1e-5.
    assert value <= bound.value + 4.3 * bound.standard_error
    assert bound.value - value > 10 * bound.standard_error  # and not by being loose


def test_without_uncertainty_all_bounds_meet():
    sure = CHAIN._replace(concentration=1e12 * np.array([[[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.5], [0.9, 0.1]]]))
    value = exact.solve(sure, 6).value
    assert exact.backward_induction(sure, sure.mean, 6)[0][0] == pytest.approx(value)
    assert exact.evaluate(sure, 6, exact.mean_mdp_policy(sure, 6)) == pytest.approx(value)
    assert exact.hindsight_bound(sure, 6, mdps=10).value == pytest.approx(value, rel=1e-5)


def test_the_value_of_a_policy_is_its_expected_return():
    """The blind policy, played in MDPs from the prior; tolerance at a rate of 1e-5."""
    policy, rng, count = exact.mean_mdp_policy(CHAIN, 5), np.random.default_rng(0), 40_000
    probability, state, earned = exact.draw_mdps(CHAIN, count, 3), np.zeros(count, int), np.zeros(count)
    for step in range(5):
        action = policy(state, np.zeros(0), 5 - step)
        share = probability[np.arange(count), state, action]
        outcome = (rng.random(count)[:, None] > share.cumsum(1)).sum(1).clip(max=1)
        earned += CHAIN.discount**step * CHAIN.reward[state, action, outcome]
        state = CHAIN.next_state[state, action, outcome]
    error = earned.std(ddof=1) / np.sqrt(count)
    assert exact.evaluate(CHAIN, 5, policy) == pytest.approx(earned.mean(), abs=4.4 * error)


def test_mistakes():
    with pytest.raises(UserError, match="information states"):
        exact.unroll(CHAIN, 30, most=1_000)
    with pytest.raises(UserError, match="no state 7"):
        exact.solve(CHAIN, 2, start=7)
    with pytest.raises(UserError, match="positive"):
        exact.from_rewards([[0.0]], concentration=0.0)
    with pytest.raises(UserError, match="discount"):
        exact.bernoulli_bandit(2, discount=0.0)
