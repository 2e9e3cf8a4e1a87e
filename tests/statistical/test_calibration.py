"""Simulation-based calibration of `evaluate`: intervals that hold the truth as often as they say."""

import numpy as np
import pytest
from scipy import stats

import bellief
from bellief import UserError
from bellief.beliefs.tabular import PAPER_PRIOR, SPARSE_PRIOR, Prior
from bellief.decisions import certificates as calibration
from bellief.decisions import logged_worlds
from bellief.decisions.certificates import Calibration, calibrate, certify
from bellief.decisions.worlds import simulate
from bellief.evaluation.knowledge import EndlessError
from bellief.evaluation.problem import prepare

pytestmark = pytest.mark.long

FALSE_FAILURE = 1e-5


def assert_calibrated(found, simulations, rate=FALSE_FAILURE):
    """Coverage within what a binomial allows at every level, and ranks that are uniform."""
    for level, coverage in found.coverage.items():
        low, high = stats.binom.interval(1 - rate, simulations, level)
        assert low <= round(coverage * simulations) <= high, (
            f"{coverage:.3f} of the {level:.0%} intervals hold the truth"
        )
    assert found.uniformity() > rate
    assert len(found.ranks) == simulations


@pytest.mark.parametrize(
    ("method", "terminates", "prior"),
    [
        ("joint", False, PAPER_PRIOR),
        ("monte-carlo", True, PAPER_PRIOR),
        pytest.param("joint", True, SPARSE_PRIOR, marks=pytest.mark.slow),
    ],
)
def test_a_few_simulations(request, method, terminates, prior):
    seed = request.config.getoption("--statistics-seed")
    found = calibrate(3, 2, 30, 160, method=method, terminates=terminates, prior=prior, draws=99, mdps=99, seed=seed)
    assert_calibrated(found, 160)
    assert found.draws == 99


@pytest.mark.slow
@pytest.mark.parametrize("terminates", [False, True])
@pytest.mark.parametrize("method", ["joint", "monte-carlo"])
def test_a_thousand_simulations(request, method, terminates):
    found = calibrate(method=method, terminates=terminates, seed=1 + request.config.getoption("--statistics-seed"))
    assert 0.87 <= found.coverage[0.9] <= 0.93
    assert found.uniformity() > 1e-3
    assert_calibrated(found, 1000)


@pytest.mark.slow
def test_a_thousand_simulations_of_the_induction(request):
    """psi_H zero: the induction really takes its steps, and cuts off a thousandth of the value's weight."""
    found = calibrate(3, 2, 30, 1000, final="zero", seed=2 + request.config.getoption("--statistics-seed"))
    assert 0.87 <= found.coverage[0.9] <= 0.93
    assert_calibrated(found, 1000)


@pytest.mark.slow  # that it collapses is shown by tests/induction/test_evaluate.py
def test_the_papers_gaussian_is_not_calibrated(request):
    """It forgets which MDP a value came from, and its intervals miss the truth most of the time."""
    found = calibrate(3, 2, 30, 150, method="gaussian", draws=99, seed=request.config.getoption("--statistics-seed"))
    assert found.coverage[0.9] < 0.7
    assert found.uniformity(bins=10) < 1e-6


def test_a_wrong_prior_is_noticed(monkeypatch):
    """Worlds whose rewards are larger than the belief expects."""
    original = calibration.draw_world

    def generous(*arguments):
        world = original(*arguments)
        return world._replace(reward=world.reward + 3.0)

    monkeypatch.setattr(calibration, "draw_world", generous)
    found = calibrate(3, 2, 3, 60, draws=99, mdps=99)
    with pytest.raises(AssertionError):
        assert_calibrated(found, 60)


@pytest.mark.parametrize("draws", [99, 199, 150])
def test_uniform_ranks_pass_and_others_do_not(draws):
    generator = np.random.default_rng(0)
    uniform = Calibration({}, generator.integers(0, draws + 1, 4000), draws, {})
    assert uniform.uniformity() > 1e-3
    heavy = np.minimum(draws, (generator.random(4000) ** 1.2 * (draws + 1)).astype(int))
    assert Calibration({}, heavy, draws, {}).uniformity() < 1e-6


def test_worlds_come_from_the_prior(request, check):
    generator = np.random.default_rng(request.config.getoption("--statistics-seed"))
    prior = Prior(dirichlet=0.7, reward_mean=1.0, reward_strength=2.0, reward_shape=3.0, reward_rate=4.0)
    worlds = [calibration.draw_world(generator, prior, 2, 1, True) for _ in range(4000)]
    rows = np.array([world.rows[0, 0] for world in worlds])
    assert rows.shape == (4000, 3)
    check.same_law(rows[:, 2], stats.beta(0.7, 1.4))
    check.same_law([world.reward_sd[0, 0] ** -2 for world in worlds], stats.gamma(3.0, scale=1 / 4.0))
    # The mean of a reward has a Student t distribution.
    check.same_law([world.reward[1, 0] for world in worlds], stats.t(6.0, 1.0, np.sqrt(4.0 / (3.0 * 2.0))))


def test_logs_come_from_the_world(request, check):
    generator = np.random.default_rng(request.config.getoption("--statistics-seed"))
    world = calibration.draw_world(generator, PAPER_PRIOR, 2, 2, True)
    behaviour = np.array([[0.3, 0.7], [0.5, 0.5]])
    data = calibration.simulate(generator, world, behaviour, 20_000)
    going = ~data.terminated[:-1]
    np.testing.assert_array_equal(data.state[1:], np.where(going, data.next_state[:-1], 0))
    for state in range(2):
        actions = data.action[data.state == state]
        check.frequencies(np.bincount(actions, minlength=2), behaviour[state])
        for action in range(2):
            here = (data.state == state) & (data.action == action)
            outcome = np.where(data.terminated[here], 2, data.next_state[here])
            check.frequencies(np.bincount(outcome, minlength=3), world.rows[state, action])
            check.same_law(data.reward[here], stats.norm(world.reward[state, action], world.reward_sd[state, action]))


def test_true_values_by_iteration():
    world = calibration.draw_world(np.random.default_rng(0), PAPER_PRIOR, 3, 2, True)
    policy = np.array([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]])
    values = np.zeros(3)
    for _ in range(400):
        values = np.array(
            [
                sum(policy[s, a] * (world.reward[s, a] + 0.9 * world.rows[s, a, :3] @ values) for a in range(2))
                for s in range(3)
            ]
        )
    np.testing.assert_allclose(calibration.true_values(world, policy, 0.9), values, rtol=1e-9)


@pytest.mark.parametrize("terminates", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_default_prior(request, terminates):
    """Worlds whose rewards depend on the next state, evaluated with the prior that they came from."""
    found = certify(
        3,
        30,
        terminates=terminates,
        simulations=100,
        draws=99,
        seed=request.config.getoption("--statistics-seed"),
        estimated=False,
    )
    assert_calibrated(found.known, 100)
    assert found.calibrated
    assert found.estimated is None


@pytest.mark.slow
def test_the_scale_taken_from_the_log_costs_little(request):
    found = certify(5, 200, simulations=600, seed=request.config.getoption("--statistics-seed"))
    assert_calibrated(found.known, 600)
    assert abs(found.estimated.coverage[0.9] - 0.9) < 0.06


def test_a_certificate_is_refused():
    """Intervals of a method that is too sure of itself."""
    narrow = Calibration({level: level / 2 for level in calibration.LEVELS}, np.zeros(500), 99, {})
    assert not calibration.Certificate({}, narrow, None).calibrated
    assert "Not calibrated" in calibration.Certificate({}, narrow, None).verdict
    right = Calibration({level: level for level in calibration.LEVELS}, np.zeros(500), 99, {})
    default = calibration.Certificate({}, right, narrow)
    assert default.calibrated
    assert not default.calibrated_by_default
    assert default.verdict.startswith("Calibrated")
    assert default.verdict.endswith("they do not.")
    assert calibration.Certificate({}, narrow, right).verdict.endswith("they do.")


def test_worlds_of_the_default_prior(request):
    """Few problems, so that the whole way is walked: an end, two that are told apart, discount 1."""
    found = certify(
        4,
        60,
        terminates=True,
        discount=1.0,
        simulations=60,
        draws=99,
        seed=request.config.getoption("--statistics-seed"),
    )
    assert found.known.uniformity(bins=5) > 1e-5
    assert found.estimated is not None
    assert found.estimated.coverage[0.9] > 0.7


UNDISCOUNTED = {"states": 3, "transitions": 20, "discount": 1.0, "terminates": True, "draws": 99}


def test_refused_logs_are_counted_and_replaced():
    found = calibrate(**UNDISCOUNTED, prior=logged_worlds.UNIT, simulations=12)
    assert len(found.ranks) == 12
    assert found.refused > 0
    assert found.refused_share == found.refused / (found.refused + 12)
    shown = calibration.Certificate({}, found, None).to_dict()
    assert shown["refused"] == found.refused_share
    assert shown["refused_with_estimated_scale"] is None
    assert calibrate(3, 2, 20, 5, prior=logged_worlds.UNIT, terminates=True, draws=99).refused == 0


def test_a_log_is_refused_where_evaluate_refuses_it():
    """On the same draws: both answer, or both raise the same sentence."""
    rng, seen = np.random.default_rng(3), set()
    policy = np.full((5, 2), 0.5)
    for seed in range(12):
        world, _ = logged_worlds.draw(rng, logged_worlds.UNIT, 3, 2, True)
        data = simulate(rng, world, policy[:3], 20)
        told: list[str | None] = []
        for ask in (
            lambda data=data, seed=seed: calibration.refuse_endless(
                prepare(data, 1.0, prior="logged", start=0, terminates=True), policy[: data.states], seed, 99
            ),
            lambda data=data, seed=seed: bellief.evaluate(
                data, policy[: data.states], 1.0, start=0, terminates=True, draws=99, seed=seed
            ),
        ):
            try:
                ask()
                told.append(None)
            except EndlessError as error:
                told.append(str(error))
        assert told[0] == told[1]
        seen.add(told[0] is None)
    assert seen == {True, False}


def test_other_draws_decide_than_those_that_are_ranked(monkeypatch):
    """The draws that decide lose their extreme values, the truth does not."""
    decided, ranked = [], []
    original = calibration.start_values

    def noted(problem, policy, seed, draws):
        (decided if seed >= calibration.OTHER_SEED else ranked).append(seed)
        return original(problem, policy, seed, draws)

    monkeypatch.setattr(calibration, "start_values", noted)
    found = calibrate(**UNDISCOUNTED, prior=logged_worlds.UNIT, simulations=5, seed=2)
    assert len(decided) == 5 + found.refused
    assert len(ranked) == 5
    assert {seed - calibration.OTHER_SEED for seed in decided} >= set(ranked)


def test_a_size_that_is_always_refused(monkeypatch):
    def refuse(*_):
        raise EndlessError("never")

    monkeypatch.setattr(calibration, "refuse_endless", refuse)
    with pytest.raises(UserError, match="refuses 50 of 50 logs of this size"):
        calibrate(**UNDISCOUNTED, prior=logged_worlds.UNIT, simulations=1)


@pytest.mark.slow
def test_ranks_are_uniform_among_the_logs_that_are_answered(request):
    """Ends, discount 1, everything known: the rule that replaces logs sees the log and not the truth."""
    seed = request.config.getoption("--statistics-seed")
    found = calibrate(**UNDISCOUNTED, prior=logged_worlds.UNIT, simulations=600, seed=seed)
    assert found.refused > 100
    assert_calibrated(found, 600)


@pytest.mark.slow
@pytest.mark.parametrize(("states", "actions", "transitions"), [(2, 2, 10), (5, 2, 50), (10, 4, 200)])
def test_the_default_prior_is_calibrated_in_its_own_model(request, states, actions, transitions):
    """Parameters known: ranks are uniform. Estimated from each log, as `evaluate` does: 0.87 to 0.93, give or take."""
    seed = 1 + request.config.getoption("--statistics-seed")
    found = certify(states, transitions, actions=actions, simulations=1000, draws=99, seed=seed)
    assert found.known.uniformity() > 1e-3
    assert found.estimated is not None
    error = 3.5 * np.sqrt(0.9 * 0.1 / 1000)
    assert 0.87 - error < found.estimated.coverage[0.9] < 0.93 + error
