"""Comparing, improving and collecting, against brute force written with NumPy alone."""

import dataclasses
import itertools

import numpy as np
import pytest

from bellief.decisions import collect_next, compare, improve
from bellief.decisions.improvement import measure, weights
from bellief.decisions.preposterior import Forecast, World, average_time, combine, draw_worlds, further_data, needed
from bellief.errors import UserError
from bellief.evaluation import evaluate
from bellief.evaluation.problem import prepare
from bellief.evaluation.sampled import SampledMDPs
from bellief.logs import Transitions, as_tally
from bellief.priors import Prior
from evaluation.conftest import ACTIONS, DRAWS, STATES, random_log

POLICIES = {"first": [0, 0, 0], "second": [1, 1, 1], "mixed": [0, 1, 0]}

# Finite variances everywhere, so that brute force has something to average.
TAME = Prior(reward_shape=4.0, reward_rate=4.0)


@pytest.fixture(scope="module")
def little():
    return Transitions.from_arrays(**{name: column[:30] for name, column in random_log(5).items()})


def test_policies_are_compared_in_the_same_worlds(check, data, log, numpy_posterior, request):
    seed = request.config.getoption("--statistics-seed")
    count = DRAWS
    result = compare(data, POLICIES, 0.9, draws=count, simulations=0, prior="paper", seed=seed)
    one_hot = [np.eye(ACTIONS)[actions] for actions in POLICIES.values()]
    # One seed for all policies gives NumPy's oracle the same worlds for all of them, too.
    values = np.stack([numpy_posterior.draw_values(log, policy, 0.9, seed=seed) for policy in one_hot], axis=1)
    expected = values @ data.start_distribution()
    check.same_laws(result.samples[:, 2] - result.samples[:, 0], expected[:, 2] - expected[:, 0])
    best = np.bincount(expected.argmax(-1), minlength=3) / len(expected)
    error = np.sqrt(0.25 / count + 0.25 / len(expected))
    np.testing.assert_allclose(result.prob_best, best, atol=4.5 * error)
    np.testing.assert_allclose(result.prob_best.sum(), 1)
    np.testing.assert_allclose(result.prob_better + result.prob_better.T, 1)
    regret = expected.max(-1, keepdims=True) - expected
    np.testing.assert_allclose(result.expected_regret, regret.mean(0), atol=4.5 * regret.std() * 2 / np.sqrt(count))
    assert result.best == result.names[int(result.samples.mean(0).argmax())]


def test_equal_policies_share_the_chance(data):
    result = compare(data, {"a": [0, 0, 0], "b": [0, 0, 0]}, 0.9, draws=50, simulations=0)
    np.testing.assert_allclose(result.prob_best, 0.5)
    np.testing.assert_allclose(result.prob_better, 0.5)
    assert result.expected_regret.tolist() == [0, 0]


def test_one_draw_is_no_forecast(data):
    """Equal policies are never told apart, so a forecast is due, for which one draw has no covariance."""
    result = compare(data, {"a": [0, 0, 0], "b": [0, 0, 0]}, 0.9, draws=1)
    assert (result.forecasts, result.more_needed) == ((), None)
    assert result.notes == ("One draw does not tell how much more data are needed: give more draws.",)


def test_more_data_settle_the_choice():
    """Two arms whose rewards differ by 0.5 with noise 1: sure after some hundreds of pulls, not after the first ten."""
    generator = np.random.default_rng(1)
    action = np.arange(10) % 2
    reward = generator.normal(0.5 * action, 1.0)
    arms = Transitions.from_arrays(np.zeros(10, int), action, reward, np.zeros(10, int))
    result = compare(arms, ["always:0", "always:1"], 0.5, simulations=150, seed=3)
    chances = [forecast.chance for forecast in result.forecasts]
    # With 2,000 simulations 0.883 after 20 transitions and 0.950 after 160; the error of 150 is 0.011.
    assert chances[-1] > chances[0] + 0.03
    for forecast in result.forecasts[:-1]:
        assert forecast.chance < 0.95
    if result.more_needed is not None:
        assert result.forecasts[-2].transitions <= result.more_needed <= result.forecasts[-1].transitions
    # Theory: the final choice is right with the mean over worlds of the larger of both chances, and an arm's mean
    # reward given n pulls is known to about 1 / sqrt(n): after very many pulls hardly a doubt is left.
    assert compare(arms, ["always:0", "always:1"], 0.5, simulations=0).more_needed is None


@pytest.mark.parametrize("simulations", [None, 400])
def test_forecasts_agree_with_the_normal_theory(monkeypatch, simulations):
    """With known noise the difference of two means has a normal posterior, and the chance has a closed form."""
    from scipy import integrate, stats

    from bellief.decisions import preposterior

    pulls, more = 8, 24
    action = np.arange(pulls) % 2
    reward = np.array([0.0, 0.3] * (pulls // 2))
    arms = Transitions.from_arrays(np.zeros(pulls, int), action, reward, np.zeros(pulls, int))
    known = Prior(reward_strength=1e-9, reward_shape=1e6, reward_rate=1e6)
    monkeypatch.setattr(preposterior, "sizes", lambda transitions: [more])
    result = compare(
        arms, ["always:0", "always:1"], 0.5, prior=known, simulations=simulations, target=0.94, seed=2, draws=4000
    )
    before, after = (np.sqrt(2 / (size / 2)) for size in (pulls, pulls + more))
    moved = np.sqrt(before**2 - after**2)

    def sure(gap):
        return stats.norm.cdf(abs(gap) / after) * stats.norm.pdf(gap, 0.3, moved)

    expected = integrate.quad(sure, -8, 8, limit=200)[0]
    (forecast,) = result.forecasts
    # 200 inner draws round the larger of two chances up by less than 0.01.
    assert forecast.chance == pytest.approx(expected, abs=4.5 * forecast.error + 0.01)


def test_the_number_needed_is_interpolated():
    found = [Forecast(100, 0.90, 0.0), Forecast(400, 0.96, 0.0)]
    assert needed(found, 0.93) == 200
    assert needed(found[:1], 0.9) == 100
    assert needed(found, 0.97) is None
    assert needed([], 0.9) is None


def test_time_of_the_collecting_policy():
    """Against a loop over steps, with ends that lead back to the start."""
    log = random_log(4, ends=0.2)
    problem = prepare(Transitions.from_arrays(**log), 0.9)
    (world,) = draw_worlds(problem, 0, 1)
    policy = np.full((STATES, ACTIONS), 0.5)
    chain = np.einsum("sa,sat->st", policy, world.rows[..., :STATES])
    ends = 1 - chain.sum(-1)
    going_on = problem.log.transitions - problem.log.ends
    broken = (problem.log.episodes - 1 - problem.log.ends) / going_on
    chain = chain * (1 - broken)
    chain += (1 - chain.sum(-1))[:, None] * problem.start
    assert (ends > 0).all()
    mass, total = problem.start, np.zeros(STATES)
    for _ in range(64):
        total, mass = total + mass, mass @ chain
    np.testing.assert_allclose(average_time(world.rows, policy, problem, 64), total / 64, rtol=1e-9)


@pytest.mark.parametrize("prior", ["paper", "logged"])
def test_further_data_are_as_many_as_asked_for_and_like_the_world(check, prior):
    problem = prepare(Transitions.from_arrays(**random_log(4, ends=0.2)), 0.9, prior=prior)
    (world,) = draw_worlds(problem, 0, 1)
    policy = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    many = further_data(np.random.default_rng(1), world, 1_000_000, problem, policy)
    visits = many.visits()
    assert visits.sum() == pytest.approx(1_000_000, abs=STATES * ACTIONS)
    np.testing.assert_allclose(visits / visits.sum(-1, keepdims=True), policy, atol=1e-4)
    outcomes = np.zeros(world.rows.shape, int)
    outcome = dataclasses.replace(problem, log=many).outcome_of_cell
    outcomes[many.cell_state, many.cell_action, outcome] = many.cell_count
    for state, action in np.ndindex(STATES, ACTIONS):
        check.frequencies(outcomes[state, action], world.rows[state, action])
    noise = world.noise[many.cell_state, many.cell_action]
    often = many.cell_count > 5_000
    np.testing.assert_allclose((many.cell_squares / many.cell_count)[often], noise[often] ** 2, rtol=0.1)
    centre = world.reward[many.cell_state, many.cell_action, outcome]
    assert (np.abs(many.cell_mean - centre) < 5 * noise / np.sqrt(many.cell_count)).all()


def test_counts_of_two_logs_together():
    log = random_log(4, ends=0.2)
    halves = [
        Transitions.from_arrays(
            **{name: column[part] for name, column in log.items()}, states=STATES, actions=ACTIONS
        ).tally()
        for part in (slice(0, 31), slice(31, None))
    ]
    whole, both = Transitions.from_arrays(**log).tally(), combine(*halves)
    for name in ("cell_state", "cell_action", "cell_next", "cell_terminated", "cell_count"):
        np.testing.assert_array_equal(getattr(both, name), getattr(whole, name))
    for name in ("cell_mean", "cell_squares", "pair_mean", "pair_squares"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), rtol=1e-9)


@pytest.mark.parametrize("objective", ["mean", "quantile", "cvar"])
def test_improve_finds_the_best_of_all_policies(little, objective):
    """All eight deterministic policies of three states, in the very worlds in which the policy was chosen."""
    count = 200
    found = improve(little, 0.9, objective=objective, mdps=count, draws=50, prior=TAME, seed=1)
    problem = prepare(little, 0.9, prior=TAME)
    every = np.array(list(itertools.product(range(ACTIONS), repeat=STATES)))
    values = SampledMDPs(problem, 1, count).values(np.eye(ACTIONS)[every]) @ problem.start
    scores = [measure(values[:, number], objective, 0.1) for number in range(len(every))]
    assert found.objective_value == pytest.approx(scores[every.tolist().index(found.policy.tolist())], rel=1e-6)
    # A local optimum; with so few policies it is the best one, or next to nothing below it.
    assert found.objective_value >= max(scores) - 0.02 * np.ptp(scores)


def test_caution_prefers_what_is_known():
    """Arm 0 pays 1.0 for sure; arm 1 paid 1.4 on average, twice. The mean likes arm 1, the worst tenth arm 0."""
    reward = [1.0, 1.001, 0.999] * 20 + [0.4, 2.4]
    arms = Transitions.from_arrays(np.zeros(62, int), [0] * 60 + [1] * 2, reward, np.zeros(62, int))
    flat = Prior(reward_strength=0.05, reward_shape=3.0, reward_rate=0.5)
    assert improve(arms, 0.5, mode="free", prior=flat).policy.tolist() == [1]
    for objective in ("quantile", "cvar"):
        assert improve(arms, 0.5, mode="free", prior=flat, objective=objective).policy.tolist() == [0]


def test_what_was_never_tried_is_not_recommended():
    """All rewards are negative, so the zero that the paper's prior expects of the untried action would look good."""
    data = Transitions.from_arrays([0] * 20, [0] * 20, [-5.0] * 20, [0] * 20, actions=2)
    assert improve(data, 0.5, draws=20, prior="paper").policy.tolist() == [0]
    assert improve(data, 0.5, draws=20, prior="paper", min_visits=0).policy.tolist() == [1]


def test_weights_of_the_objectives():
    values = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    np.testing.assert_allclose(weights(values, "mean", 0.1), 0.2)
    np.testing.assert_allclose(weights(values, "cvar", 0.4), [0, 0.5, 0, 0.5, 0])
    np.testing.assert_allclose(weights(values, "cvar", 0.3), [0, 1 / 1.5, 0, 0.5 / 1.5, 0])
    assert measure(values, "cvar", 0.4) == 1.5
    assert weights(values, "quantile", 0.5).argmax() == 4


def brute_force(data, policy, discount, prior, pool=20_000, outer=800, seed=0):
    """Var over one more observation x of E[value | data, x], by reweighting a pool of posterior draws."""
    generator = np.random.default_rng(seed)
    problem = prepare(data, discount, prior=prior)
    worlds = World(*(np.stack(fields) for fields in zip(*draw_worlds(problem, seed, pool), strict=True)))
    rewards = worlds.reward
    chain = np.einsum("sa,nsat->nst", policy, worlds.rows)
    gain = np.einsum("sa,nsao,nsao->ns", policy, worlds.rows, rewards)
    values = np.linalg.solve(np.eye(STATES) - discount * chain, gain[..., None])[..., 0] @ problem.start
    reductions = np.zeros((STATES, ACTIONS))
    for state, action in np.ndindex(STATES, ACTIONS):
        means = []
        for world in range(outer):
            after = generator.choice(STATES, p=worlds.rows[world, state, action])
            mean, sd = rewards[world, state, action, after], worlds.noise[world, state, action]
            reward = generator.normal(mean, sd)
            likely = worlds.rows[:, state, action, after] / worlds.noise[:, state, action]
            gaps = (reward - rewards[:, state, action, after]) / worlds.noise[:, state, action]
            likely = likely * np.exp(-0.5 * gaps**2)
            means.append(likely @ values / likely.sum())
        reductions[state, action] = np.var(means, ddof=1)
    return reductions, values.var()


@pytest.mark.slow
@pytest.mark.parametrize("prior", [TAME, dataclasses.replace(TAME, outcome_strength=0.3)])
def test_collect_against_brute_force(little, policy, prior):
    expected, variance = brute_force(little, policy, 0.8, prior)
    plan = collect_next(little, policy, 0.8, prior=prior, draws=4000)
    assert plan.variance == pytest.approx(variance, rel=0.1)
    # A variance of 800 draws is known to about 5%; the rest is what the first order leaves out.
    np.testing.assert_allclose(plan.reduction, expected, rtol=0.3)
    assert np.corrcoef(plan.reduction.ravel(), expected.ravel())[0, 1] > 0.97
    assert plan.ranking()[0] == np.unravel_index(expected.argmax(), expected.shape)


def test_collect_in_one_state_is_exact():
    """One state and no future: the value is a mixture of two mean rewards, whose posterior variances are textbook."""
    reward = np.array([1.0, 2.0, 0.5, 1.5, 3.0])
    arms = Transitions.from_arrays([0] * 5, [0, 0, 0, 1, 1], reward, [0] * 5)
    policy = np.array([[0.3, 0.7]])
    plan = collect_next(arms, policy, 0.5, prior=TAME, visits=4, draws=20)
    for action, seen in ((0, reward[:3]), (1, reward[3:])):
        n = len(seen)
        rate = 4 + 0.5 * ((seen**2).sum() - seen.sum() ** 2 / (1 + n))
        variance = rate / ((1 + n) * (4 + n / 2 - 1))
        # The state is its own successor for sure: discounted visits are 1 / (1 - 0.5).
        expected = (2 * policy[0, action]) ** 2 * variance * 4 / (1 + n + 4)
        assert plan.reduction[0, action] == pytest.approx(expected, rel=1e-9)


def test_collect_of_rows_is_exact_where_the_future_hardly_counts(log, policy):
    """Rewards are known; with a tiny discount the start value is linear in the start state's rows."""
    worth = np.array([1.0, 4.0, -2.0])
    data = Transitions.from_arrays(**{**log, "reward": worth[log["state"]]})
    sure = Prior(reward_strength=1e-15, reward_shape=3.0, reward_rate=1e-12)
    discount = 1e-4
    plan = collect_next(data, policy, discount, prior=sure, visits=7, start=1, draws=20)
    for action in range(ACTIONS):
        taken = (log["state"] == 1) & (log["action"] == action)
        row = np.bincount(log["next_state"][taken], minlength=STATES) + 0.5
        total = row.sum()
        variance = ((row / total) @ worth**2 - (row / total @ worth) ** 2) / (total + 1)
        expected = (policy[1, action] * discount) ** 2 * variance * 7 / (total + 7)
        assert plan.reduction[1, action] == pytest.approx(expected, rel=1e-2)


def test_collect_puts_the_unknown_first(data, log):
    wide = Transitions.from_arrays(**log, actions=3)
    plan = collect_next(wide, "uniform", 0.9, draws=50, prior="paper")
    assert {action for _, action in plan.ranking()[:STATES]} == {2}
    assert plan.variance is None
    first = plan.to_dict()["pairs"][0]
    assert (first["variance_reduction"], first["share"], first["seen"]) == (None, None, 0)
    times = [plan.time[pair] for pair in plan.ranking()[:STATES]]
    assert times == sorted(times, reverse=True)


def test_collect_leaves_out_what_the_policy_never_does(data):
    assert {action for _, action in collect_next(data, [0, 0, 0], 0.9, draws=20).ranking()} == {0}


def test_scaling_rewards_scales_everything(log, policy):
    """Rewards in cents with a scale of 100 say the same as rewards in euros with a scale of 1."""
    euros = Transitions.from_arrays(**log)
    cents = Transitions.from_arrays(**{**log, "reward": 100 * log["reward"]})

    def draws_of(data, **options):
        return evaluate(data, policy, 0.9, draws=50, **{"prior": "paper", **options}).samples

    np.testing.assert_allclose(draws_of(cents, reward_scale=100), 100 * draws_of(euros, reward_scale=1), rtol=1e-6)
    np.testing.assert_allclose(draws_of(cents, reward_scale="data"), 100 * draws_of(euros, reward_scale="data"))
    typical = np.sqrt(np.mean(log["reward"] ** 2))
    same = draws_of(euros, prior=Prior(reward_rate=typical**2))
    np.testing.assert_allclose(draws_of(euros, reward_scale="data"), same, rtol=1e-9)


@pytest.mark.parametrize(
    ("ask", "fragment"),
    [
        (lambda data: compare(data, ["uniform"]), "two or more"),
        (lambda data: compare(data, "uniform"), "in a list"),
        (lambda data: compare(data, ["uniform", "uniform"]), "there twice"),
        (lambda data: compare(data, ["uniform", "behaviour"], target=1.0), "target must lie"),
        (lambda data: compare(data, ["uniform", "behaviour"], simulations=-1), "simulations must be"),
        (lambda data: compare(data, ["uniform", "always:7"]), "action must be one of the actions 0 to 1, not 7"),
        (lambda data: compare(data, ["uniform", "always:x"]), "not x"),
        (lambda data: improve(data, objective="max"), "no objective 'max'"),
        (lambda data: improve(data, tail=0), "tail must lie"),
        (lambda data: improve(data, min_visits=-1), "min_visits"),
        (lambda data: collect_next(data, visits=0), "visits must be"),
        (lambda data: evaluate(data, prior="paper", reward_scale=0), "reward_scale must be"),
        (lambda data: evaluate(data, prior="paper", reward_scale="big"), "reward_scale must be"),
        (lambda data: evaluate(data, reward_scale=2.0), "leave out reward_scale"),
        (lambda data: evaluate(data, belief="huge"), "no belief 'huge'"),
        (lambda data: evaluate(data, method="gaussian", support=np.eye(3)), "The support"),
        (lambda data: evaluate(data, {0: 1}), "state 1 sum to 0"),
    ],
)
def test_mistakes(data, ask, fragment):
    with pytest.raises(UserError) as mistake:
        ask(data)
    assert fragment in str(mistake.value)


def test_tables_and_cards(data):
    comparison = compare(data, ["uniform", "behaviour"], 0.9, draws=30, simulations=3)
    better = improve(data, 0.9, draws=30, mdps=20)
    plan = collect_next(data, "uniform", 0.9, draws=30)
    for result in (comparison, better, plan):
        assert "<table" in result._repr_html_()
        assert type(result).__name__ in repr(result)
        assert len(result.to_pandas())
    assert comparison.plot().get_title(loc="left")
    assert plan.plot().get_title(loc="left")


def test_no_pair_removes_more_variance_than_there_is():
    """No engine was replaced at 340,000 miles: to first order a visit would remove many times the variance."""
    log = as_tally("example:bus-engines")
    rule = {label: "replace" if int(label.split("-")[0]) >= 340 else "keep" for label in log.state_labels}
    plan = collect_next(log, rule, 0.99, reward_range=(-10.2, 0.0), draws=200)
    assert plan.variance is not None
    assert plan.reduction.max() == plan.variance
    assert plan.to_dict(1)["pairs"][0]["share"] == 1


def test_a_single_draw_has_no_variance_and_still_a_picture():
    data = Transitions.from_arrays([0, 1, 0, 1], [0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], [1, 0, 0, 1])
    plan = collect_next(data, discount=0.9, draws=1)
    assert all(pair["share"] is None for pair in plan.to_dict()["pairs"])
    assert len(plan.plot().patches) == 4
