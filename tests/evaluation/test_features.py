"""Logs whose states are vectors, and what a policy is worth there."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bellief.beliefs import linear
from bellief.decisions import compare
from bellief.decisions.feature_calibration import calibrate, certify_features
from bellief.errors import UserError
from bellief.evaluation import FeatureSettings, evaluate
from bellief.evaluation.feature_belief import learn
from bellief.evaluation.feature_evaluation import evaluate_features
from bellief.evaluation.feature_policies import read_feature_policy
from bellief.evaluation.feature_priors import scales_of
from bellief.features import parse
from bellief.logs import FeatureTransitions, LogStatistics, Transitions
from bellief.logs.feature_log import units_of

ACTIONS = np.array([[[0.9, 0.1], [0.0, 0.9]], [[0.8, -0.1], [0.1, 0.95]]])
PUSH = np.array([[0.1, 0.0], [-0.1, 0.05]])


def make_log(steps, seed=0, noise=0.1):
    """A linear system that pays 1 less the first feature, in episodes of ten steps."""
    generator = np.random.default_rng(seed)
    rows = []
    for step in range(steps):
        state = generator.normal(size=2) if step % 10 == 0 else following
        action = int(generator.random() < 0.3 + 0.4 * (state[0] > 0))
        following = ACTIONS[action] @ state + PUSH[action] + noise * generator.normal(size=2)
        rows.append((*state, "go" if action else "stay", 1 - state[0], *following, step // 10))
    names = ["state_heat", "state_load", "action", "reward", "next_state_heat", "next_state_load", "episode"]
    return pd.DataFrame(rows, columns=names)


@pytest.fixture(scope="module")
def frame():
    return make_log(1000)


@pytest.fixture(scope="module")
def log(frame):
    return Transitions.from_frame(frame)


def test_every_way_in(frame, log, tmp_path):
    assert isinstance(log, FeatureTransitions)
    assert log.feature_names == ("heat", "load")
    assert log.action_labels == ("go", "stay")
    assert log.first.sum() == 100
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    arrays = Transitions.from_arrays(log.state, frame["action"], log.reward, log.next_state, episode=frame["episode"])
    for other in (Transitions.from_file(tmp_path / "log.csv"), Transitions.from_file(tmp_path / "log.parquet"), arrays):
        assert isinstance(other, FeatureTransitions)
        np.testing.assert_allclose(other.state, log.state)
        np.testing.assert_allclose(other.next_state, log.next_state)
        np.testing.assert_array_equal(other.action, log.action)
        np.testing.assert_array_equal(other.first, log.first)
    # Without names an episode begins where a step does not start where the one before it led.
    np.testing.assert_array_equal(Transitions.from_frame(frame.drop(columns="episode")).first, log.first)


def test_minari_boxes():
    gymnasium = pytest.importorskip("gymnasium")

    class Episode:
        observations = np.arange(6.0).reshape(3, 2)
        actions, rewards = np.array([1, 2]), np.array([0.5, 1.0])
        terminations, truncations = np.array([False, True]), np.array([False, False])

    class Dataset:
        observation_space = gymnasium.spaces.Box(-9, 9, (2,))
        action_space = gymnasium.spaces.Discrete(2, start=1)

        def iterate_episodes(self):
            return iter([Episode(), Episode()])

    log = Transitions.from_minari(Dataset())
    assert isinstance(log, FeatureTransitions)
    np.testing.assert_array_equal(log.next_state, [[2, 3], [4, 5], [2, 3], [4, 5]])
    np.testing.assert_array_equal(log.action, [0, 1, 0, 1])
    np.testing.assert_array_equal(log.terminated, [False, True, False, True])
    np.testing.assert_array_equal(log.first, [True, False, True, False])


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("state_heat", "hot", "row 3 has state_heat 'hot'"),
        ("next_state_load", np.nan, "row 3 has next_state_load 'nan'.*also where the episode ended"),
        ("state_load", np.inf, "row 3 has state_load 'inf'"),
        ("reward", "oops", "row 3 has reward 'oops'"),
        ("action", "", "row 3 has action ''"),
    ],
)
def test_mistakes_name_the_row(frame, column, value, said):
    bad = frame.astype({column: object})
    bad.loc[2, column] = value
    with pytest.raises(UserError, match=said):
        Transitions.from_frame(bad)


def test_other_mistakes(frame, log, tmp_path):
    with pytest.raises(UserError, match="no 'next_state_load'"):
        Transitions.from_frame(frame.drop(columns="next_state_load"))
    with pytest.raises(UserError, match="only evaluate works with those"):
        compare(log, ["uniform", "behaviour"])
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(UserError, match=r"log.csv: the states of this log are vectors \(heat, load\)"):
        LogStatistics.from_file(tmp_path / "log.csv")
    with pytest.raises(UserError, match="vectors, for which belief means nothing"):
        evaluate(log, belief="dense")
    with pytest.raises(UserError, match="start must be states of 2 finite numbers"):
        evaluate(log, start="1,2,3")
    with pytest.raises(UserError, match="In the state of row 1 the policy gives 5"):
        evaluate(log, lambda state: 5)
    with pytest.raises(UserError, match="shape"):
        evaluate(log, np.zeros((2, 2)))
    with pytest.raises(UserError, match="discount 1"):
        evaluate(log, discount=1.0)
    for text, said in (("stay,0,x,0", "row 1 has heat 'x'"), ("sing,0,0,0", "row 1 has action 'sing'")):
        (tmp_path / "policy.csv").write_text(f"action,constant,heat,load\n{text}\n")
        with pytest.raises(UserError, match=said):
            read_feature_policy(str(tmp_path / "policy.csv"), log)
    (tmp_path / "policy.csv").write_text("action,constant,heat,load\nstay,0,0,0\n")
    with pytest.raises(UserError, match="no row for action go"):
        read_feature_policy(tmp_path / "policy.csv", log)


def test_policies(log, tmp_path):
    state = np.array([0.3, -0.2])

    def probabilities(policy):
        found = read_feature_policy(policy, log)
        return np.asarray(found.choose(found.weights, jnp.asarray(state)))

    np.testing.assert_allclose(probabilities("uniform"), 0.5)
    np.testing.assert_allclose(probabilities("always:stay"), [0, 1])
    np.testing.assert_allclose(probabilities(lambda one: 0 if one[0] > one[1] else 1), [1, 0])
    (tmp_path / "policy.csv").write_text("action,constant,heat,load\ngo,0,1,0\nstay,0,0,1\n")
    np.testing.assert_allclose(probabilities(tmp_path / "policy.csv")[0], 1 / (1 + np.exp(-0.5)), rtol=1e-5)
    np.testing.assert_allclose(probabilities(f"greedy:{tmp_path / 'policy.csv'}"), [1, 0])
    # The log goes with 70% where the first feature is positive, with 30% elsewhere.
    found = read_feature_policy("behaviour", log)
    taken = np.array([found.choose(found.weights, one)[0] for one in jnp.array([[1.5, 0.0], [-1.5, 0.0]])])
    assert taken[0] > 0.6
    assert taken[1] < 0.4


def exact_value(start, horizon, discount):
    """Of actions taken with equal probability: the mean of the state follows the mean of the two maps."""
    state, total = np.asarray(start, float), 0.0
    for step in range(horizon):
        total += discount**step * (1 - state[0])
        state = ACTIONS.mean(0) @ state + PUSH.mean(0)
    return total


@pytest.fixture(scope="module")
def posterior(log):
    return evaluate(log, "uniform", 0.9, horizon=5, start=[1.0, 0.5], draws=100)


def test_value_against_the_exact_one(posterior):
    truth = exact_value([1.0, 0.5], 5, 0.9)
    low, high = posterior.interval(0.99)
    assert low[0] < truth < high[0]
    assert high[0] - low[0] < 1.0
    assert posterior.sd_exists.all()
    assert posterior.to_dict()["diagnostics"]["features"] == ["heat", "load"]
    assert posterior.state_labels == ("start",)


def test_fitted_values_agree_with_rollouts(log, posterior):
    # Linear rewards, dynamics and a policy that looks at nothing: the value is linear, and fitted exactly.
    fitted = evaluate(log, "uniform", 0.9, method="fitted", horizon=5, start=[1.0, 0.5], draws=100)
    apart = fitted.start_samples - posterior.start_samples
    assert abs(apart.mean()) < 5 * apart.std() / 10
    assert 0.8 < posterior.start_samples.std() / fitted.start_samples.std() < 1.25
    assert fitted.diagnostics["fit_error"] < 0.1


@pytest.mark.slow
def test_ends_are_learned():
    """A walk that ends, and pays 1, beyond 2: nearer states are worth more."""
    generator = np.random.default_rng(0)
    rows, state = [], 0.0
    for _ in range(800):
        following = state + 0.3 + 0.3 * generator.normal()
        ended = following > 2
        rows.append((state, 0, float(ended), following, ended))
        state = 0.0 if ended else following
    state, action, reward, following, ended = (np.array(column) for column in zip(*rows, strict=True))
    log = Transitions.from_arrays(state[:, None], action, reward, following[:, None], ended)
    settings = FeatureSettings(rollouts=64)
    found = evaluate_features(log, discount=0.9, horizon=20, at=[[1.5], [0.0]], draws=20, settings=settings)
    near, far = found.mean[1:]
    # From 0 it takes about seven steps, from 1.5 two.
    assert 0.7 < near < 1.0
    assert 0.4 < far < 0.65
    assert any("boundary" in said for said in found.explain())


@pytest.mark.slow
def test_calibration():
    found = certify_features(1, 60, simulations=200, horizon=5, estimated=False)
    for level, share in found.known.coverage.items():
        # False failures: 1e-4 for the four together.
        assert stats.binomtest(round(200 * share), 200, level).pvalue > 2.5e-5, level
    assert found.calibrated


@pytest.mark.slow
def test_calibration_in_the_units_of_the_log():
    found = calibrate(3, 2, 200, 100, 0.9, 12, 199, "joint", 1, True, lambda fraction: None)
    for level, share in found.coverage.items():
        # False failures: 1e-4 for the four together.
        assert stats.binomtest(round(100 * share), 100, level).pvalue > 2.5e-5, level


def runaway_log(steps=400, noise=0.05, seed=0):
    """A first feature that doubles now and then, so that a few steps hold nearly all of its spread."""
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(steps, 2)) * np.where(np.arange(steps) % 40 == 0, 300, 1)[:, None] ** [1, 0]
    action = rng.integers(0, 2, steps)
    following = state + state @ [[0.5, 0.0], [0.1, -0.1]] + noise * rng.normal(size=state.shape)
    reward = 1 + state[:, 1] - 0.2 * state[:, 0] ** 2 + noise * rng.normal(size=steps)
    return Transitions.from_arrays(state, action, reward, following)


def test_the_default_prior_leaves_to_the_data_what_they_know():
    """Least squares, with their noise, however heavy the tails: no weight is shrunk beyond its own error."""
    log = runaway_log()
    units = units_of(log)
    form = linear.make_form("difference", parse("constant+raw", 2), parse("constant+poly:2", 2))
    state, following = units.standard(log.state), units.standard(log.next_state)
    with jax.enable_x64(True):
        belief = learn(log, units, form, None, state, following)
        features = np.asarray(jax.vmap(lambda one: form.reward_features(one, jnp.asarray(units.bounds)))(state))
    for action in range(2):
        rows = log.action == action
        design, reward = features[rows], log.reward[rows] / units.reward
        weights, (squares,), _, _ = np.linalg.lstsq(design, reward, rcond=None)
        root = np.asarray(belief.rewards.root[action])
        mean = np.linalg.solve(root[:-1, :-1], root[:-1, -1])
        noise = root[-1, -1] ** 2 / float(belief.rewards.degrees[action])
        assert noise == pytest.approx(squares / (len(reward) - 6), rel=0.1)
        error = np.sqrt(noise * np.diag(np.linalg.inv(design.T @ design)))
        assert (np.abs(mean - weights) < 0.1 * error).all()


def test_scales_of_a_regression():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.ones((300, 1)), 50 * rng.normal(size=(300, 1))], axis=1)
    y = x @ [[1.0, 0.0], [2.0, 0.01]] + rng.normal(size=(300, 2)) * [3, 0.1]
    groups = [np.arange(300) < 100, (np.arange(300) >= 100) & (np.arange(300) < 290)]
    scales = scales_of(x, y, groups)
    np.testing.assert_allclose(scales.features, [1, 2500], rtol=0.2)
    np.testing.assert_allclose(scales.noise, [9, 0.01], rtol=0.2)
    # Rows outside all groups do not count; other units are other units and nothing else.
    moved = scales_of(np.where(groups[0] | groups[1], x.T, 1e9).T * [1, 7], y * [3, 1], groups)
    np.testing.assert_allclose(moved.features, scales.features * [1, 49])
    np.testing.assert_allclose(moved.noise, scales.noise * [9, 1])
    # As many weights as rows, or no rows at all: the log does not tell the noise.
    for rows in (2, 0):
        few = scales_of(x, y, [np.arange(300) < rows])
        np.testing.assert_allclose(few.noise, 0.1 * few.outputs)
