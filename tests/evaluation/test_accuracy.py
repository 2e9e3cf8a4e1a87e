"""Closed moments, the linear term and the improved law of start values, against brute force."""

import json
import math
import re

import numpy as np
import pytest

import bellief
from bellief import Transitions, compare, evaluate
from bellief.cli import options
from bellief.cli.failures import OptionError
from bellief.errors import UserError
from bellief.evaluation import skewed_law
from bellief.evaluation.accuracy import StartDraws
from bellief.evaluation.linear_term import dirichlet_cumulants
from bellief.evaluation.problem import prepare
from bellief.evaluation.sampled import SampledMDPs
from bellief.evaluation.start_law import ClosedForm, start_law
from bellief.evaluation.value_moments import second_order, start_moments

STATES, ACTIONS = 4, 2


def make_log(visits: int, seed: int = 0, ends: float = 0.0) -> Transitions:
    """So many visits of every pair of a random MDP, with rewards that vary and, with some chance, an end."""
    random = np.random.default_rng(seed)
    chance, reward = random.dirichlet(np.full(STATES, 0.5), (STATES, ACTIONS)), random.normal(size=(STATES, ACTIONS))
    rows = [(s, a) for s in range(STATES) for a in range(ACTIONS) for _ in range(visits)]
    following = [int(random.choice(STATES, p=chance[row])) for row in rows]
    paid = [float(reward[row] + 0.3 * random.normal()) for row in rows]
    ended = (random.random(len(rows)) < ends) if ends else None
    return Transitions.from_arrays([s for s, _ in rows], [a for _, a in rows], paid, following, terminated=ended)


POLICY = np.array([[0.7, 0.3], [1.0, 0.0], [0.2, 0.8], [0.5, 0.5]])


def check_moments(visits: int, draws: int, prior: str, discount: float, ends: float) -> None:
    """Means within 0.02 standard deviations and standard deviations within 5%, beyond four Monte Carlo errors."""
    problem = prepare(make_log(visits, ends=ends), discount, prior=prior)
    found = second_order(problem, POLICY)
    values = SampledMDPs(problem, 3, draws).values(POLICY[None])[:, 0]
    values = np.column_stack([values, problem.start_values(values, 3)])
    sd = values.std(0)
    assert (np.abs(found.mean - values.mean(0)) < (0.02 + 4 / np.sqrt(draws)) * sd).all()
    assert (np.abs(found.sd / sd - 1) < 0.05 + 4 / np.sqrt(2 * draws)).all()


@pytest.mark.parametrize(
    ("prior", "discount", "ends"),
    [("logged", 0.9, 0.0), ("sparse", 0.95, 0.0), ("paper", 0.9, 0.0), ("logged", 0.9, 0.1)],
)
def test_moments_are_those_of_sampled_mdps(prior, discount, ends):
    check_moments(20, 20_000, prior, discount, ends)


@pytest.mark.slow
def test_moments_against_a_million_draws():
    check_moments(20, 1_000_000, "logged", 0.9, 0.0)


def test_cumulants_of_dirichlet_means():
    mean, weight, numbers = np.array([[0.2, 0.5, 0.3]]), np.array([4.0]), np.array([[1.0, -2.0, 3.0]])
    numbers = numbers - (mean * numbers).sum()
    draws = np.random.default_rng(0).dirichlet(weight * mean[0], 1_000_000) @ numbers[0]
    second, third, fourth = (float(one[0]) for one in dirichlet_cumulants(mean, numbers, weight))
    assert (draws**2).mean() == pytest.approx(second, rel=0.01)
    assert (draws**3).mean() == pytest.approx(third, abs=0.02 * second**1.5)
    assert (draws**4).mean() - 3 * (draws**2).mean() ** 2 == pytest.approx(fourth, abs=0.03 * second**2)


def start_draws(count: int, visits: int = 20, seed: int = 1) -> StartDraws:
    problem = prepare(make_log(visits), 0.9)
    drawn = StartDraws(problem, POLICY[None], seed, None, helped=True)
    drawn.extend(count)
    return drawn


def test_linear_term_has_the_law_that_is_claimed():
    drawn = start_draws(20_000)
    start, linear = drawn.start()
    assert drawn.terms is not None
    law = drawn.terms.law(drawn.problem, np.ones((1, 1)))
    x = linear[:, 0] / law.sd[0]
    assert abs(x.mean()) < 5 / np.sqrt(len(x))
    assert x.var() == pytest.approx(1, abs=5 * np.sqrt(2.5 / len(x)))
    assert (x**3).mean() == pytest.approx(law.skewness[0], abs=5 * np.sqrt(20 / len(x)))
    assert np.corrcoef(x, start[:, 0])[0, 1] > 0.95


def test_draws_are_the_same_whether_helped_or_continued():
    drawn, again = start_draws(100), start_draws(60)
    again.extend(100)
    plain = SampledMDPs(drawn.problem, 1, 100).values(POLICY[None])
    np.testing.assert_array_equal(drawn.values, plain)
    np.testing.assert_allclose(again.values, drawn.values, rtol=1e-12)
    np.testing.assert_allclose(again.start()[1], drawn.start()[1], rtol=1e-9, atol=1e-12)
    data = make_log(20)
    joint, monte_carlo = (evaluate(data, POLICY, 0.9, method=name, draws=100) for name in ("joint", "monte-carlo"))
    np.testing.assert_array_equal(joint.samples, monte_carlo.samples)


def test_law_is_closer_than_draws():
    """Root mean square errors over 100 repeats of 100 draws each."""
    drawn = start_draws(20_000)
    start, linear = (field[:, 0] for field in drawn.start())
    assert drawn.terms is not None
    shape = [float(field[0]) for field in drawn.terms.law(drawn.problem, np.ones((1, 1)))]
    truth = np.array([start.mean(), *np.quantile(start, [0.05, 0.95])])
    plain, better, told = [], [], []
    for repeat in range(100):
        own = slice(100 * repeat, 100 * repeat + 100)
        law = start_law(start[own], linear[own], *shape)
        assert law is not None
        plain.append([start[own].mean(), *np.quantile(start[own], [0.05, 0.95], method="weibull")])
        better.append([law.points.mean(), *np.quantile(law.points, [0.05, 0.95])])
        told.append([law.mean_error, law.error_at(0.05), law.error_at(0.95)])
    plain_error, error = (np.sqrt(((np.array(one) - truth) ** 2).mean(0)) for one in (plain, better))
    assert (error < 0.5 * plain_error).all()
    assert (np.mean(told, 0) < 2.5 * error).all()
    assert (np.mean(told, 0) > 0.4 * error).all()


def test_law_with_the_closed_form_is_closer_still():
    """Root mean square errors over 100 repeats of 50 draws each, no larger than they are told to be."""
    drawn = start_draws(200_000, visits=10)
    start, linear = (field[:, 0] for field in drawn.start())
    assert drawn.terms is not None
    shape = [float(field[0]) for field in drawn.terms.law(drawn.problem, np.ones((1, 1)))]
    # The linear term has mean zero: as a control variate it makes the true mean more exact.
    slope = np.cov(start, linear)[0, 1] / linear.var()
    truth = np.array([start.mean() - slope * linear.mean(), *np.quantile(start, [0.05, 0.95])])
    left = np.array([np.std(start - slope * linear), *(2.1 * start.std(),) * 2]) / np.sqrt(len(start))
    errors = []
    for closed in (None, second_order(drawn.problem, POLICY).closed_form()):
        found, told = [], []
        for repeat in range(100):
            own = slice(50 * repeat, 50 * repeat + 50)
            law = start_law(start[own], linear[own], *shape, closed)
            assert law is not None
            found.append([law.points.mean(), *np.quantile(law.points, [0.05, 0.95])])
            told.append([law.mean_error, law.error_at(0.05), law.error_at(0.95)])
        errors.append(np.sqrt(((np.array(found) - truth) ** 2).mean(0)))
        assert (errors[-1] < 2.5 * np.sqrt((np.array(told) ** 2).mean(0)) + 3 * left).all()
    assert (errors[1] < 0.5 * errors[0]).all()


def test_closed_form_of_the_start_value_alone():
    problem = prepare(make_log(10), 0.9)
    inverse = problem.mean_mdp.guide(POLICY, 0.9).inverse
    assert inverse is not None
    alone = start_moments(problem, POLICY, inverse)
    assert alone is not None
    assert len(alone.mean) == 1
    assert alone.closed_form() == pytest.approx(second_order(problem, POLICY).closed_form())


@pytest.mark.parametrize("wrong", [{"mean": 1.0}, {"sd": 2.0}])
def test_a_wrong_closed_form_is_found_out(wrong):
    """The draws decide where they contradict what the closed form says of itself."""
    random = np.random.default_rng(0)
    x, rest = random.normal(size=(2, 20_000))
    closed = ClosedForm(0.0, np.sqrt(1.01), 0.0, 0.0, 0.0)._replace(**wrong)
    law = start_law(x + 0.1 * rest, x, 1.0, 0.0, 0.0, closed)
    assert law is not None
    assert law.points.mean() == pytest.approx(0, abs=0.02)
    np.testing.assert_allclose(np.quantile(law.points, [0.05, 0.95]), [-1.653, 1.653], atol=0.03)


def test_a_useless_linear_term_changes_nothing():
    random = np.random.default_rng(0)
    assert start_law(random.normal(size=500), random.normal(size=500), 1.0, 0.0, 0.0) is None
    assert start_law(np.ones(500), np.zeros(500), 0.0, 0.0, 0.0) is None
    assert start_law(random.normal(size=10), random.normal(size=10), 1.0, 0.0, 0.0) is None


def test_a_wrong_law_is_found_out():
    """With enough draws the law of x is taken from them, and what depends on x from the draws as well."""
    x = np.random.default_rng(0).standard_exponential(100_000) - 1
    law = start_law(x, x, 1.0, 0.0, 0.0)
    assert law is not None
    np.testing.assert_allclose(np.quantile(law.points, [0.05, 0.95]), np.quantile(x, [0.05, 0.95]), atol=0.05)


def rare(random, count):
    """Numbers of mean 0 that nearly all lie at 0.3, but for 3% that cost 10 on average; sd, skewness, excess."""
    cost, exact = np.where(random.random(count) < 0.03, random.exponential(10, count), 0.0), 0.03 * 10
    second, third, fourth = (0.03 * 10**power * factor for power, factor in ((2, 2), (3, 6), (4, 24)))
    sd = np.sqrt(second - exact**2)
    third = third - 3 * exact * second + 2 * exact**3
    fourth = fourth - 4 * exact * 0.03 * 6000 + 6 * exact**2 * second - 3 * exact**4
    return exact - cost, (sd, -third / sd**3, fourth / sd**4 - 3)


def test_a_shape_that_four_cumulants_do_not_tell():
    """Root mean square errors in 200 repeats of 300 draws: no end worse than plain, the mean and one end far better."""
    random = np.random.default_rng(0)
    many, shape = rare(random, 1_000_000)
    assert not skewed_law.reaches(*shape[1:])
    assert many.std() == pytest.approx(shape[0], rel=0.02)
    truth = np.array([0.0, *np.quantile(many + 0.05 * random.normal(size=len(many)), [0.02, 0.95])])
    plain, better = [], []
    for _ in range(200):
        linear = rare(random, 300)[0]
        values = linear + 0.05 * random.normal(size=300)
        law = start_law(values, linear, *shape)
        assert law is not None
        plain.append([values.mean(), *np.quantile(values, [0.02, 0.95])])
        better.append([law.points.mean(), *np.quantile(law.points, [0.02, 0.95])])
        assert law.points[-1] <= values.max() + 1e-9
        assert (np.diff(law.points) >= -1e-9).all()
        assert law.mean_error == pytest.approx(0.05 / np.sqrt(300), rel=0.3)
    plain_error, error = (np.sqrt(((np.array(one) - truth) ** 2).mean(0)) for one in (plain, better))
    assert (error < [0.1, 0.8, 1.1] * plain_error).all()


def test_weights_under_which_the_linear_term_has_its_mean():
    random = np.random.default_rng(1)
    linear, shape = rare(random, 500)
    law = start_law(3 + 2 * linear, linear, *shape)
    assert law is not None
    assert law.points.mean() == pytest.approx(3, abs=1e-9)
    # Draws that all lie on one side of the mean cannot be weighed.
    assert start_law(3 + linear - linear.max() - 1, linear - linear.max() - 1, *shape) is None


def test_skewed_points():
    points = skewed_law.points(np.array([-0.8, 0.0, 0.8]), 1001)
    assert (np.diff(points, axis=0) >= 0).all()
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose((points**2).mean(0), 1)
    np.testing.assert_allclose((points**3).mean(0), [-0.8, 0, 0.8], atol=0.05)


def test_moments_method(tmp_path):
    data = make_log(20)
    value, reference = evaluate(data, POLICY, 0.9, method="moments"), evaluate(data, POLICY, 0.9, draws=4000)
    found = second_order(prepare(data, 0.9), POLICY)
    np.testing.assert_allclose(value.mean, found.mean[:-1])
    np.testing.assert_allclose(value.sd, found.sd[:-1])
    np.testing.assert_allclose(value.interval(), reference.interval(), atol=0.1 * reference.sd.max())
    summary, other = value.start_summary(), reference.start_summary()
    assert all(summary[name] == pytest.approx(other[name], abs=0.08 * other["sd"]) for name in summary)
    # The draws depend on one another as values do.
    np.testing.assert_allclose(np.corrcoef(value.samples.T), np.corrcoef(reference.samples.T), atol=0.15)
    assert value.start_errors() is None
    assert not value.diagnostics["warnings"]


def test_moments_says_where_it_is_rough():
    # Without a discount the value depends on how soon episodes end, and by far more than linearly.
    rough = evaluate(make_log(20, ends=0.1), POLICY, 1.0, method="moments")
    assert any("closed form is rough" in warning for warning in rough.diagnostics["warnings"])
    with pytest.raises(UserError, match="no variance"):
        evaluate(Transitions.from_arrays([0], [0], [1.0], [1]), "uniform", 0.9, method="moments", prior="paper")
    with pytest.raises(UserError, match="leave out horizon"):
        evaluate(make_log(5), POLICY, 0.9, method="moments", horizon=3)


def test_accuracy_is_reached_and_reported(tmp_path):
    data = make_log(5)
    coarse, fine = (evaluate(data, POLICY, 0.9, accuracy=share) for share in (0.02, 0.002))
    for value, share in ((coarse, 0.02), (fine, 0.002)):
        errors = value.start_errors()
        assert errors is not None
        assert errors.share_of_width <= share
        assert value.to_dict()["monte_carlo_error"] == errors.to_dict()
    assert len(coarse.samples) < len(fine.samples)
    again = bellief.ValuePosterior.load(fine.save(tmp_path / "value.npz"))
    assert json.dumps(again.to_dict()) == json.dumps(fine.to_dict())
    assert again.prob(lambda values: values > again.start_summary()["low"]) == pytest.approx(0.95, abs=0.002)
    with pytest.raises(UserError, match="accuracy must lie"):
        evaluate(data, POLICY, 0.9, accuracy=0.0)
    with pytest.raises(UserError, match="joint and monte-carlo"):
        evaluate(data, POLICY, 0.9, method="moments", accuracy=0.01)


@pytest.mark.parametrize("accuracy", [0.0, 0.9e-4, 0.51, math.nan])
def test_an_accuracy_is_checked_in_the_same_way_everywhere(accuracy):
    said = re.escape(f"accuracy must lie between 0.0001 and 0.5, not {accuracy}.")
    vectors = Transitions.from_arrays(np.zeros((2, 1)), [0, 1], [0.0, 1.0], np.ones((2, 1)))
    for log in (make_log(5), vectors):
        with pytest.raises(UserError, match=said):
            evaluate(log, "uniform", 0.9, accuracy=accuracy)
    with pytest.raises(UserError, match=said):
        compare(make_log(5), [POLICY, "uniform"], 0.9, accuracy=accuracy)
    with pytest.raises(OptionError, match=said):
        options.accuracy(str(accuracy))


def test_an_accuracy_means_nothing_where_states_are_vectors():
    vectors = Transitions.from_arrays(np.zeros((2, 1)), [0, 1], [0.0, 1.0], np.ones((2, 1)))
    with pytest.raises(UserError, match="for which accuracy means nothing"):
        evaluate(vectors, "uniform", 0.9, accuracy=0.1)


def test_compare_knows_the_law_of_differences():
    data = make_log(20)
    found = compare(data, {"one": POLICY, "other": "uniform"}, 0.9, draws=200, simulations=0)
    many = compare(data, {"one": POLICY, "other": "uniform"}, 0.9, draws=20_000, simulations=0, seed=9)
    truth = many.samples[:, 0] - many.samples[:, 1]
    rows = {row["policy"]: row["difference_to_best"] for row in found.to_dict()["policies"]}
    worse = next(name for name in rows if name != found.best)
    sign = 1 if worse == "one" else -1
    assert rows[worse]["mean"] == pytest.approx(sign * truth.mean(), abs=0.05 * truth.std())
    assert rows[worse]["sd"] == pytest.approx(truth.std(), rel=0.1)
    assert rows[found.best]["mean"] == 0
    asked = compare(data, {"one": POLICY, "other": "uniform"}, 0.9, accuracy=0.02, simulations=0)
    for row in asked.to_dict()["policies"]:
        assert row["monte_carlo_error"]["share_of_width"] <= 0.02
