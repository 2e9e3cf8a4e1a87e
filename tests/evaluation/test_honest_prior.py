"""The default prior for logs: base measures, reward levels, what the log tells, the bootstrap; exact cases by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bellief
from bellief import Transitions, UserError
from bellief.evaluation import chains, reward_levels
from bellief.evaluation.base_measure import Base
from bellief.evaluation.knowledge import possible_returns, value_bounds
from bellief.evaluation.problem import prepare
from bellief.evaluation.sampled import SampledMDPs


def ward(patients=200, seed=0, flip=0.0):
    """Two states of a patient; the wrong one is followed by one of two ends, of which the second pays 1."""
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(patients):
        state = 0
        while True:
            action = int(rng.random() < 0.5)
            if rng.random() < 0.3:
                following = 2 + int(rng.random() < 0.4 + 0.3 * action)
                rows.append((patient, state, action, float(following == 3), following, True))
                break
            following = int(rng.random() < 0.5)
            rows.append((patient, state, action, 0.0, following, False))
            state = following
    patient, state, action, reward, following, ended = (np.array(column) for column in zip(*rows, strict=True))
    return Transitions.from_arrays(state, action, reward + flip, following, ended, patient, states=4, actions=2)


def test_base_draws_have_the_masses_of_the_base(check):
    base = Base.of(
        np.array([0, 0, 2]), np.array([1, 4, 0]), np.array([3.0, 2.0, 4.0]), states=3, actions=2, outcomes=5, weight=1.0
    )
    table = base.mean_over(np.eye(5))  # [outcome, state]
    share = np.array([4.2, 3.2, 0.2, 0.2, 2.2]) / 10
    np.testing.assert_allclose(table[:, 0], (np.array([0, 3, 0, 0, 2]) + share) / 6)
    np.testing.assert_allclose(table[:, 1], share)
    np.testing.assert_allclose(base.matrix().toarray() + base.elsewhere[:, None] * base.share, table.T)
    state, outcome = np.divmod(np.arange(15), 5)
    np.testing.assert_allclose(base.chance(state, outcome).reshape(3, 5), table.T)
    by_state = np.arange(15.0).reshape(3, 5)
    np.testing.assert_allclose(base.mean_by_state(by_state), (table.T * by_state).sum(-1))
    unit = (np.arange(20_000) + 0.5) / 20_000
    for one in range(3):
        drawn = np.bincount(base.draw(np.full(20_000, one), unit), minlength=5) / 20_000
        np.testing.assert_allclose(drawn, table[:, one], atol=1e-4)


def test_the_mean_mdp_is_the_mean_of_the_draws():
    """Values of one step: rewards and rows of sampled MDPs against the closed form, in standard errors."""
    problem = prepare(ward(30, seed=3), 0.9)
    policy = np.full((4, 2), 0.5)
    explored = SampledMDPs(problem, 0, 4000).values(policy[None], horizon=2)[:, 0]
    mean = problem.mean_mdp
    one = (policy * mean.reward.reshape(4, 2)).sum(-1)
    np.testing.assert_allclose(
        SampledMDPs(problem, 0, 4000).values(policy[None], horizon=1)[:, 0].mean(0)[:2], one[:2], atol=0.01
    )
    error = explored.std(0) / np.sqrt(len(explored))
    # Rows and rewards of different steps are independent unless a state follows itself, so the means are close.
    assert (np.abs(explored.mean(0) - mean.values(policy, 0.9, 2))[:2] < 5 * error[:2] + 0.01).all()


def test_levels_are_what_outcomes_pay():
    """Hand-computed: two outcomes with means 0 and 2 from two cells each, one pair off by one."""
    found = reward_levels.fit(
        np.array([0, 0, 1, 1]), np.ones(4), np.array([0.0, 0.0, 1.0, 3.0]), np.zeros(4), states=2, outcomes=3
    )
    within, across = 2.0 / 2, (2 * 1.0 + 2 * 1.0) / 1
    between = (across - within) / 2
    share = between / (between + within / 2)
    np.testing.assert_allclose(found.level[:2], [1 - share, 1 + share])
    # Two degrees of freedom tell what cells differ by, one what outcomes do: Student's over Gauss's 97.5% points.
    apart = between * (1 + 1 / 2) * (stats.t.ppf(0.975, 1) / stats.norm.ppf(0.975)) ** 2
    unseen = within * (stats.t.ppf(0.975, 2) / stats.norm.ppf(0.975)) ** 2 + (1 - share) * apart
    np.testing.assert_allclose(found.scale[:2] ** 2, unseen)
    fitted = (1 - share) ** 2 * between + within * (1 - 2 * share / 2 + share**2 / 2)
    np.testing.assert_allclose(found.optimism[:2], unseen / fitted)


def test_an_outcome_of_another_action_counts_once():
    """Where a state leads is told by how many of its actions led there, not by how often one of them did."""
    data = Transitions.from_arrays([0] * 12, [0] * 10 + [1, 1], [0.0, 1.0] * 6, [1] * 11 + [2], states=3, actions=3)
    base = prepare(data, 0.9).base
    np.testing.assert_allclose(base.chance(np.zeros(2, int), np.array([1, 2])) * 4, np.array([2, 1]) + base.share[1:])
    np.testing.assert_allclose(base.share * 4, [1 / 3, 2 + 1 / 3, 1 + 1 / 3])


def test_steps_that_always_paid_nothing_pay_exactly_nothing():
    problem = prepare(ward(), 1.0)
    value = bellief.evaluate(ward(), "behaviour", 1.0, draws=300)
    assert problem.levels is not None
    assert (problem.levels.scale == 0).all()
    assert problem.levels.level.tolist() == [0, 0, 0, 0, 0, 1]
    assert value.samples.min() >= 0
    assert value.samples.max() <= 1


def test_scale_and_offset_of_rewards():
    """Times 10^6: values times 10^6. Plus a constant: values change by it times the length, in every draw."""
    plain = bellief.evaluate(ward(), discount=0.9, draws=50).samples
    data = ward()
    big = Transitions.from_arrays(
        data.state, data.action, data.reward * 1e6, data.next_state, data.terminated, states=4, actions=2
    )
    ours = Transitions.from_arrays(
        data.state, data.action, data.reward, data.next_state, data.terminated, states=4, actions=2
    )
    plain = bellief.evaluate(ours, discount=0.9, draws=50).samples
    np.testing.assert_allclose(bellief.evaluate(big, discount=0.9, draws=50).samples, plain * 1e6, rtol=1e-9)
    more = Transitions.from_arrays(
        data.state, data.action, data.reward + 5, data.next_state, data.terminated, states=4, actions=2
    )
    problem = prepare(ours, 0.9)
    policy = np.full((1, 4, 2), 0.5)
    lengths = np.empty((50, 4))
    mdps = SampledMDPs(problem, 0, 50)
    for draws, worlds in mdps.batches(np.ones(8, bool)):
        batch = worlds.chain(policy.ravel(), 4)
        lengths[draws] = chains.values(batch._replace(reward=np.ones_like(batch.reward)), 0.9)
    shifted = bellief.evaluate(more, discount=0.9, draws=50).samples
    np.testing.assert_allclose(shifted[:, :2], (plain + 5 * lengths)[:, :2], rtol=1e-9)


def test_states_renamed_give_the_same_posterior():
    data, names = ward(), np.array([1, 0, 3, 2])
    renamed = Transitions.from_arrays(
        names[data.state], data.action, data.reward, names[data.next_state], data.terminated, states=4, actions=2
    )
    first, second = (bellief.evaluate(one, discount=0.9, draws=4000).samples for one in (data, renamed))
    error = first[:, :2].std(0) * np.sqrt(2 / 4000)
    assert (np.abs(first[:, :2].mean(0) - second[:, names[:2]].mean(0)) < 5 * error).all()


def test_files_split_give_the_same_posterior(tmp_path):
    """In every draw, in any order of the parts; rewards of a pair are added up in another order."""
    data = ward()
    names = ("state", "action", "reward", "next_state", "terminated")
    frame = pd.DataFrame({name: getattr(data, name) for name in names} | {"episode": data.first.cumsum()})
    cuts = [0, 1, 150, len(frame)]
    parts = [tmp_path / f"part-{number}.csv" for number in range(3)]
    for path, (begin, end) in zip(parts, itertools.pairwise(cuts), strict=True):
        frame.iloc[begin:end].to_csv(path, index=False)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    whole = bellief.evaluate(tmp_path / "whole.csv", discount=1.0, draws=50)
    for order in (parts, parts[::-1]):
        split = bellief.evaluate(order, discount=1.0, draws=50)
        np.testing.assert_allclose(split.samples, whole.samples, rtol=1e-12)
        np.testing.assert_allclose(split.start_samples, whole.start_samples, rtol=1e-12)
        assert split.bounds == pytest.approx(whole.bounds)
        assert split.supported == pytest.approx(whole.supported)


def test_what_is_told_beside_the_interval_has_the_scale_of_rewards():
    """Bounds and the ends of the interval times 10^6, and the same share of supported time."""
    data = ward()
    big = Transitions.from_arrays(
        data.state, data.action, data.reward * 1e6, data.next_state, data.terminated, states=4, actions=2
    )
    small, large = (bellief.evaluate(one, discount=1.0, draws=50) for one in (data, big))
    one, other = small.start_summary(), large.start_summary()
    for name in ("low", "high", "mean"):
        assert other[name] == pytest.approx(1e6 * one[name], rel=1e-9)
    assert large.bounds == pytest.approx(tuple(1e6 * end for end in small.bounds), rel=1e-9)
    assert large.supported == small.supported


def test_single_outcomes_weigh_less():
    data = Transitions.from_arrays([0, 0, 0, 1], [0] * 4, [0.0, 1.0, 0.0, 1.0], [1, 2, 3, 1], states=4)
    problem = prepare(data, 0.9)
    np.testing.assert_allclose(problem.rows.shape, [1 / 3] * 4)
    np.testing.assert_allclose(problem.rows.rest, [0.1 / 3, 0.1 / 3, 0.1, 0.1])


def test_possible_returns():
    assert possible_returns(prepare(ward(), 1.0)) == (0.0, 1.0)
    endless = Transitions.from_arrays([0, 1] * 5, [0] * 10, [1.0, 3.0] * 5, [1, 0] * 5)
    low, high = possible_returns(prepare(endless, 0.9)) or (0, 0)
    assert (low, high) == (pytest.approx(10), pytest.approx(30))
    assert possible_returns(prepare(ward(flip=1.0), 1.0)) is None


def test_bounds_by_hand():
    """State 0 is known to lead to state 1, where nothing is known: the value is the discount times anything."""
    data = Transitions.from_arrays(
        [0] * 4000 + [1], [0] * 4001, [0.0] * 4000 + [1.0], [1] * 4000 + [0],
        terminated=[False] * 4000 + [True], states=2,
    )  # fmt: skip
    problem = prepare(data, 0.5, start=0)
    known = data.visits() >= 5
    low, high = value_bounds(problem, np.ones((2, 1)), known, (0.0, 1.0), 0, 0.9)
    assert (low, high) == (pytest.approx(0, abs=1e-3), pytest.approx(0.5, abs=1e-3))
    value = bellief.evaluate(data, discount=0.5, start=0, draws=50)
    assert value.supported == pytest.approx(2 / 3, abs=0.01)
    assert value.bounds == (pytest.approx(0, abs=1e-3), pytest.approx(0.5, abs=1e-3))


def test_a_log_that_cannot_tell_says_so_first():
    value = bellief.evaluate(ward(3), "always:1", 1.0, draws=50)
    assert value.cannot_tell is not None
    assert value.diagnostics["warnings"][0] == value.cannot_tell
    assert bellief.evaluate(ward(300), "behaviour", 1.0, draws=50).cannot_tell is None
    compared = bellief.compare(ward(3), ["always:0", "always:1"], 1.0, draws=50, simulations=0)
    assert all(texts[0].startswith("The log cannot tell") for texts in compared.warnings.values())


def test_a_reward_range_is_kept():
    data = Transitions.from_arrays([0, 1, 0], [0, 0, 1], [0.0, 1.0, 0.5], [1, 0, 1])
    value = bellief.evaluate(data, discount=0.5, reward_range=(0, 1), draws=2000)
    assert value.samples.min() >= -1e-12
    assert value.samples.max() <= 2 + 1e-12
    assert bellief.evaluate(data, discount=0.5, draws=2000).samples.max() > 2
    with pytest.raises(UserError, match="outside the range"):
        bellief.evaluate(data, reward_range=(0, 0.7))
    with pytest.raises(UserError, match="smaller first"):
        bellief.evaluate(data, reward_range=(1, 0))


def test_bootstrap_against_frequencies(check):
    """One state, one action, episodes of one step: the value is the mean of resampled rewards."""
    reward = (np.arange(40) % 4 == 0).astype(float)
    zeros = np.zeros(40, int)
    data = Transitions.from_arrays(zeros, zeros, reward, zeros, zeros == 0, np.arange(40))
    value = bellief.evaluate(data, discount=0.9, method="bootstrap", draws=4000)
    check.same_laws(np.rint(40 * value.start_samples), np.random.default_rng(5).binomial(40, 0.25, 4000))
    with pytest.raises(UserError, match="keeps no rows"):
        bellief.evaluate(data.tally(), method="bootstrap")


def test_loops_that_never_end_and_pay_nothing_are_worth_nothing():
    batch = chains.Batch(
        chains.Cells.of(np.array([0, 1]), np.array([1, 0]), np.ones((1, 2))),
        chains.Entries(*3 * [np.zeros(0, int)], np.zeros(0)),
        np.zeros((1, 2)),
    )
    assert (chains.values(batch, 1.0) == 0).all()


def test_safe_improvement_keeps_rare_actions_as_they_were():
    data = Transitions.from_arrays([0] * 13, [0] * 10 + [1] * 3, [0.0] * 10 + [1.0] * 3, [0] * 13)
    safe = bellief.improve(data, 0.5, draws=50, mdps=20)
    np.testing.assert_allclose(safe.probabilities, [[10 / 13, 3 / 13]])
    assert safe.policy.tolist() == [0]
    free = bellief.improve(data, 0.5, mode="free", draws=50, mdps=20)
    np.testing.assert_allclose(free.probabilities, [[0, 1]])
    with pytest.raises(UserError, match="mode"):
        bellief.improve(data, 0.5, mode="bold")


def test_first_states_are_uncertain_too():
    data = Transitions.from_arrays(
        [0] * 10 + [1] * 10, [0] * 20, [0.0] * 10 + [1.0] * 10, [0] * 20, [True] * 20, np.arange(20)
    )
    value = bellief.evaluate(data, discount=1.0, draws=4000)
    # Values are known to be 0 and 1; the share of the second first state is Beta(10, 10).
    assert value.start_samples.std() == pytest.approx(np.sqrt(0.25 / 21), rel=0.1)
    given = bellief.evaluate(data, discount=1.0, draws=400, start=np.array([0.5, 0.5]))
    assert given.start_samples.std() < 0.02
