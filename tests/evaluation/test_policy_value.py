"""`evaluate` against the same posterior computed with NumPy alone."""

import functools

import numpy as np
import pytest

from bellief.beliefs.tabular import Prior
from bellief.errors import UserError
from bellief.evaluation import FeatureSettings
from bellief.evaluation import evaluate as evaluate_policy
from bellief.logs import Transitions
from evaluation.conftest import DRAWS, STATES

# The NumPy posterior of these tests has the paper's prior.
evaluate = functools.partial(evaluate_policy, prior="paper")


@pytest.mark.parametrize("horizon", [None, 1, 4])
@pytest.mark.parametrize("discount", [0.5, 0.95])
def test_mean_mdp(data, log, policy, numpy_posterior, discount, horizon):
    result = evaluate(data, policy, discount, method="mean-mdp", horizon=horizon)
    np.testing.assert_allclose(
        result.mean, numpy_posterior.mean_values(log, policy, discount, horizon=horizon), rtol=1e-10
    )
    assert result.samples.shape == (1, STATES)


def test_mean_mdp_with_ends_and_the_sparse_prior(ending_log, policy, numpy_posterior):
    data = Transitions.from_arrays(**ending_log)
    result = evaluate(data, policy, 1.0, method="mean-mdp", prior="sparse")
    expected = numpy_posterior.mean_values(ending_log, policy, 1.0, dirichlet=1 / (STATES + 1), terminates=True)
    # Under discount 1 every step has a chance of 1e-10 to be the last.
    np.testing.assert_allclose(result.mean, expected, rtol=1e-8)


def assert_same_posterior(check, samples, expected):
    """The law of every state's value, and that of a difference of two, which the marginals alone do not fix."""
    for state in range(STATES):
        check.same_laws(samples[:, state], expected[:, state])
    check.same_laws(samples[:, 0] - samples[:, 2], expected[:, 0] - expected[:, 2])


def test_monte_carlo(request, check, data, log, policy, numpy_posterior):
    seed = request.config.getoption("--statistics-seed")
    result = evaluate(data, policy, 0.9, method="monte-carlo", draws=DRAWS, seed=seed)
    assert_same_posterior(check, result.samples, numpy_posterior.draw_values(log, policy, 0.9, seed=seed))


def test_joint_with_a_horizon(request, check, data, log, policy, numpy_posterior):
    seed = request.config.getoption("--statistics-seed")
    result = evaluate(data, policy, 0.9, horizon=3, draws=DRAWS, seed=seed)
    expected = numpy_posterior.draw_values(log, policy, 0.9, horizon=3, seed=seed)
    assert_same_posterior(check, result.samples, expected)
    assert result.diagnostics["horizon"] == 3
    with pytest.raises(UserError, match="final cannot be 'own'"):
        evaluate(data, policy, 0.9, horizon=3, final="own")


def test_ends_with_discount_one(request, check, ending_log, policy, numpy_posterior):
    seed = request.config.getoption("--statistics-seed")
    result = evaluate(Transitions.from_arrays(**ending_log), policy, 1.0, draws=DRAWS, seed=seed)
    expected = numpy_posterior.draw_values(ending_log, policy, 1.0, terminates=True, seed=seed)
    assert_same_posterior(check, result.samples, expected)


@pytest.mark.slow
def test_sparse_prior(request, check, data, log, policy, numpy_posterior):
    seed = request.config.getoption("--statistics-seed")
    result = evaluate(data, policy, 0.9, prior="sparse", draws=DRAWS, seed=seed)
    expected = numpy_posterior.draw_values(log, policy, 0.9, dirichlet=1 / STATES, seed=seed)
    assert_same_posterior(check, result.samples, expected)


def test_deterministic_policy(request, check, data, log, numpy_posterior):
    """A deterministic policy is evaluated on its own rows alone; the law is that of the whole model."""
    seed = request.config.getoption("--statistics-seed")
    actions = np.array([0, 1, 1])
    result = evaluate(data, actions, 0.9, draws=DRAWS, seed=seed)
    expected = numpy_posterior.draw_values(log, np.eye(2)[actions], 0.9, seed=seed)
    assert_same_posterior(check, result.samples, expected)
    same = evaluate(data, np.eye(2)[actions], 0.9, draws=DRAWS, seed=seed)
    np.testing.assert_array_equal(same.samples, result.samples)


def test_joint_for_ever_is_monte_carlo(data, policy):
    joint = evaluate(data, policy, 0.9, method="joint", draws=DRAWS, seed=7)
    monte_carlo = evaluate(data, policy, 0.9, method="monte-carlo", draws=DRAWS, seed=7)
    np.testing.assert_array_equal(joint.samples, monte_carlo.samples)
    assert joint.method == "joint"


def test_seeds(data, policy):
    first, again, other = (evaluate(data, policy, 0.9, draws=DRAWS, seed=seed).samples for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_start(data, policy):
    weights = np.array([0.2, 0.5, 0.3])
    by_default = evaluate(data, policy, 0.9, method="mean-mdp")
    in_one = evaluate(data, policy, 0.9, method="mean-mdp", start=2)
    mixed = evaluate(data, policy, 0.9, method="mean-mdp", start=weights)
    np.testing.assert_allclose(by_default.start, data.start_distribution())
    assert in_one.start_summary()["mean"] == in_one.mean[2]
    assert mixed.start_summary()["mean"] == pytest.approx(weights @ mixed.mean, rel=1e-12)


def test_behaviour_policy(data, log, numpy_posterior):
    result = evaluate(data, "behaviour", 0.9, method="mean-mdp")
    frequencies = np.array(
        [[np.mean(log["action"][log["state"] == state] == action) for action in range(2)] for state in range(STATES)]
    )
    np.testing.assert_allclose(result.mean, numpy_posterior.mean_values(log, frequencies, 0.9), rtol=1e-10)


def test_announced_states_count(data, log):
    """A state never seen takes part in the prior: it may be where an unknown pair leads."""
    wide = Transitions.from_arrays(**log, states=5, actions=4)
    result = evaluate(wide, "uniform", 0.9, method="mean-mdp")
    assert (result.states, result.actions) == (5, 4)
    np.testing.assert_allclose(result.mean[3], result.mean[4])
    assert result.diagnostics["unvisited_pairs"] == 5 * 4 - 3 * 2


def test_own_prior(data, policy):
    strong = evaluate(data, policy, 0.9, method="mean-mdp", prior=Prior(reward_mean=5.0, reward_strength=1e12))
    np.testing.assert_allclose(strong.mean, 50.0, rtol=1e-6)


def test_variance_exists_where_every_pair_in_use_was_tried(log, policy):
    kept = ~((log["state"] == 2) & (log["action"] == 1))
    data = Transitions.from_arrays(**{name: column[kept] for name, column in log.items()})
    everywhere = evaluate(data, [0, 1, 0], draws=DRAWS)
    nowhere = evaluate(data, policy, draws=DRAWS)
    one_step = evaluate(data, policy, draws=DRAWS, horizon=1)
    assert everywhere.sd_exists.all()
    assert np.isfinite(everywhere.sd).all()
    assert not nowhere.sd_exists.any()
    assert one_step.sd_exists.tolist() == [True, True, False]
    assert nowhere.start_summary()["sd"] is None
    assert one_step.to_dict()["per_state"][2]["sd"] is None
    assert np.isnan(one_step.sd[2])
    assert any("never tried: (2, 1)" in warning for warning in nowhere.diagnostics["warnings"])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gaussian", "histogram"])
def test_the_papers_beliefs(data, policy, method):
    result = evaluate(data, policy, 0.9, method=method, draws=50, lookahead=20)
    assert result.samples.shape == (50, STATES)
    assert np.isfinite(result.samples).all()
    assert result.diagnostics["lookahead"] == 20
    assert result.diagnostics["effective_sample_size"] >= 1
    assert any("spread is far too small" in warning for warning in result.diagnostics["warnings"])


@pytest.mark.slow
def test_lookahead_without_a_horizon_holds_the_weight(data, policy):
    result = evaluate(data, policy, 0.85, final="zero", draws=10)
    steps = result.diagnostics["lookahead"]
    assert 0.85**steps <= 1e-3 < 0.85 ** (steps - 1)


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"discount": 0}, "discount must lie in"),
        ({"discount": 1.1}, "discount must lie in"),
        ({"discount": float("nan")}, "discount must lie in"),
        ({"discount": 1.0}, "With discount 1"),
        ({"method": "magic"}, "no method 'magic'"),
        ({"prior": "magic"}, "no prior 'magic'"),
        ({"final": "magic", "method": "mean-mdp"}, "no final value 'magic'"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"draws": 0}, "draws must be at least 1"),
        ({"mdps": 0}, "mdps must be at least 1"),
        ({"lookahead": -1}, "lookahead must be at least 1"),
        ({"level": 1.0}, "level must lie"),
        ({"seed": -1}, "seed must lie"),
        ({"start": 3}, "start must be one of the states 0 to 2"),
        ({"start": [0.5, 0.5]}, "3 non-negative numbers"),
        ({"start": [0.5, 0.6, 0.0]}, "3 non-negative numbers"),
        ({"policy": [0, 1]}, "shape (3, 2)"),
        ({"policy": [0, 1, 2]}, "action 2 in state 2"),
        ({"policy": [[0.5, 0.5], [0.5, 0.5], [0.5, 0.4]]}, "state 2 sum to 0.9"),
        ({"policy": [[0.5, 0.5], [1.5, -0.5], [1, 0]]}, "state 1"),
        ({"policy": [[0.5, 0.5], [float("nan"), 1], [1, 0]]}, "state 1"),
    ],
)
def test_mistakes(data, options, fragment):
    with pytest.raises(UserError) as mistake:
        evaluate(data, **options)
    assert fragment in str(mistake.value)


def test_tables_beyond_memory_are_refused(monkeypatch, data):
    monkeypatch.setattr("bellief.evaluation.question_checks._physical_memory", lambda: 25_000)
    evaluate(data, method="mean-mdp", draws=1)
    with pytest.raises(UserError, match=r"3 states.* 2 actions need about .* ask for fewer draws"):
        evaluate(data, final="pooled", draws=200)


def test_a_horizon_of_a_billion_steps_is_one_of_the_steps_that_count():
    data = Transitions.from_arrays([0, 1, 0, 1], [0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], [1, 0, 0, 1])
    for discount in (0.5, 0.99):
        endless, long = (evaluate_policy(data, discount=discount, draws=20, horizon=steps) for steps in (None, 10**9))
        np.testing.assert_allclose(long.samples, endless.samples, rtol=1e-12)
    with pytest.raises(UserError, match=r"With discount 1 .* at most 1000000, or give a discount below 1"):
        evaluate_policy(data, discount=1, draws=20, horizon=10**9)
    with pytest.raises(UserError, match=r"With discount 0.999999 .* at most 1000000, or leave it out"):
        evaluate_policy(data, discount=0.999999, draws=20, horizon=10**9)


@pytest.mark.parametrize("method", ["joint", "gaussian", "method2"])
def test_feature_settings_mean_nothing_where_states_are_counted(method):
    data = Transitions.from_arrays([0, 1], [0, 0], [1.0, 2.0], [1, 0])
    with pytest.raises(UserError, match="The states of this log are counted"):
        evaluate_policy(data, method=method, settings=FeatureSettings(features="constant+raw"))
