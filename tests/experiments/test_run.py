"""Runs: reproducible one by one, read where they should be, saved whole or not at all."""

import importlib
import itertools
import json
import time

import numpy as np
import pandas as pd
import pytest

import bellief
from bellief.agents import bbi_sampled, psrl_paper
from bellief.agents.schedule import update_steps
from bellief.errors import UserError
from bellief.experiments import compiled_loop, event_loop, task
from bellief.experiments.results import check_new_folder, reading_steps, summarise

pytestmark = pytest.mark.long

# By name, because the function `run` hides the module of that name in the package.
run_module = importlib.import_module("bellief.experiments.run")
batches_module = importlib.import_module("bellief.experiments.batches")

# The same in every test, so that one compilation serves all of them.
STEPS = 60
SETTINGS = {"mdps": 2, "horizon": 3, "rule": "optimistic"}


def learn(runs=5, seed=0, steps=STEPS, **options):
    return bellief.run("nchain", "bbi-paper", steps, runs, seed, settings=SETTINGS, **options)


@pytest.fixture(scope="module")
def five():
    return learn()


@pytest.fixture(scope="module")
def every_step():
    """The rewards of five runs one by one, and their smoothed values, from readings at every step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "reading_steps", lambda steps, more: list(range(1, steps + 1)))
        result = learn(half_life=7.0)
    return np.diff(result.total, axis=1, prepend=0.0), result.smoothed


def assert_same_run(first, second, number):
    for name in ("total", "smoothed", "policies", "gain"):
        np.testing.assert_array_equal(getattr(first, name)[number], getattr(second, name)[number])
    plans = [frame[frame["run"] == number].reset_index(drop=True) for frame in (first.info, second.info)]
    assert len(plans[0]) == len(update_steps(STEPS))
    pd.testing.assert_frame_equal(*plans, check_exact=True)


def test_a_run_does_not_depend_on_how_many_there_are(five):
    twenty = learn(runs=20)
    for number in range(5):
        assert_same_run(five, twenty, number)
    assert (twenty.total[3] != twenty.total[13]).any()


def test_a_single_run_is_computed_alone_where_that_changes_nothing():
    """PSRL in NChain: the run that it is among many, bit for bit. In DoubleLoop values round differently."""
    alone, many = (bellief.run("nchain", "psrl-paper", 500, runs) for runs in (1, 3))
    for name in ("total", "smoothed", "policies", "gain"):
        np.testing.assert_array_equal(getattr(alone, name)[0], getattr(many, name)[0])
    plans = [frame[frame["run"] == 0].reset_index(drop=True) for frame in (alone.info, many.info)]
    pd.testing.assert_frame_equal(*plans, check_exact=True)
    widths = [task.open_task(env, {}).default_width("cpu", 1, psrl_paper) for env in ("nchain", "doubleloop")]
    assert widths == [1, 10]


def test_same_seed_same_result(five):
    again = learn()
    for number in range(5):
        assert_same_run(five, again, number)


def test_other_seed_other_result(five):
    assert (learn(seed=1).total[:, -1] != five.total[:, -1]).any()


def test_curves_are_sums_of_the_rewards(five, every_step):
    rewards, _ = every_step
    assert set(np.unique(rewards)) <= {0.0, 2.0, 10.0}
    totals = np.cumsum(rewards, axis=1)
    np.testing.assert_allclose(five.total, totals[:, five.step - 1], rtol=1e-6)
    np.testing.assert_allclose(five.average_reward, rewards.mean(1), rtol=1e-6)
    np.testing.assert_allclose(five.final_average_reward, rewards[:, -STEPS // 10 :].mean(1), rtol=1e-6)


def test_smoothing(every_step):
    """A reward counts half after seven steps; the weights of all rewards so far sum to one."""
    rewards, smoothed = every_step
    age = np.arange(STEPS)[:, None] - np.arange(STEPS)
    weight = np.where(age >= 0, 0.5 ** (age / 7.0), 0.0)
    weight /= weight.sum(1, keepdims=True)
    np.testing.assert_allclose(smoothed, rewards @ weight.T, rtol=2e-5, atol=1e-6)


def test_gain_is_the_long_run_average_of_the_last_policy(five):
    environment = bellief.make("nchain")
    model = environment.mdp()
    for policy, gain in zip(five.policies, five.gain, strict=True):
        chain = np.einsum("sa,sat->st", policy, model.transition)
        balance = np.vstack([chain.T - np.eye(5), np.ones(5)])
        stationary = np.linalg.lstsq(balance, np.array([0.0] * 5 + [1.0]), rcond=None)[0]
        assert gain == pytest.approx(stationary @ (policy * model.reward).sum(1), rel=1e-9)


@pytest.mark.slow
def test_double_loop_pays_no_more_than_it_can():
    result = bellief.run("doubleloop", "bbi-paper", 50, 3, settings=SETTINGS)
    assert (result.total[:, -1] <= 2 * (50 // 5)).all()
    assert (result.total == np.round(result.total)).all()
    assert (result.gain <= 0.4 + 1e-12).all()


@pytest.mark.parametrize("steps", [1, 2, 9, 10, 11, 100, 12_345, 1_000_000])
def test_reading_steps(steps):
    readings = reading_steps(steps)
    assert readings == sorted(set(readings))
    assert readings[0] == 1
    assert readings[-1] == steps
    assert len(readings) <= 202
    before_last_tenth = steps - max(1, steps // 10)
    assert before_last_tenth in [0, *readings]


def test_one_step():
    result = learn(steps=1, runs=2)
    np.testing.assert_array_equal(result.average_reward, result.final_average_reward)
    assert result.updates == 1


def test_frames(five):
    frame = five.to_pandas()
    assert frame.columns.tolist() == ["run", "step", "total", "smoothed"]
    np.testing.assert_array_equal(frame[frame["run"] == 2]["total"], five.total[2])
    assert five.info["run"].unique().tolist() == [0, 1, 2, 3, 4]
    assert five.info["step"].unique().tolist() == update_steps(STEPS)


def test_summary_against_the_textbook():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    summary = summarise(values)
    assert summary["mean"] == 4.0
    assert summary["se"] == pytest.approx(np.sqrt(38 / 3) / 2)
    assert summary["p05"] == pytest.approx(1.15)
    assert summary["p95"] == pytest.approx(8.25)


def test_progress_ends_at_one():
    seen = []
    learn(progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) == len(update_steps(STEPS))
    assert seen[-1] == 1.0


def test_an_error_stops_every_batch(monkeypatch):
    """A pool waits for its threads, so the other batches must notice that one of them failed."""
    ticks, number = [], itertools.count()

    def events(*arguments):
        # One atomic step: two threads must not both take themselves for the second.
        first = next(number) == 0
        for step in range(1, 10_000):
            if first and step == 3:
                raise KeyboardInterrupt
            time.sleep(0.001)
            ticks.append(step)
            yield event_loop.Plan(step, bbi_sampled.Info(*(np.zeros(10) for _ in bbi_sampled.Info._fields)))

    monkeypatch.setattr(compiled_loop, "run_batch", events)
    monkeypatch.setattr(batches_module, "workers", lambda batches, places: 2)
    with pytest.raises(KeyboardInterrupt):
        learn(runs=20)
    assert len(ticks) < 5_000


def test_save(five, tmp_path):
    five.save(tmp_path / "a" / "b")
    folder = tmp_path / "a" / "b"
    assert json.loads((folder / "result.json").read_text()) == five.to_dict()
    curves = pd.read_csv(folder / "curves.csv")
    np.testing.assert_allclose(curves["total"], five.total.ravel())
    assert (folder / "policy.csv").read_text() == (folder / "policies" / "run-000.csv").read_text()
    assert len(list((folder / "policies").iterdir())) == 5
    with pytest.raises(UserError, match="exists already"):
        five.save(folder)


def test_save_leaves_nothing_behind_where_it_fails(five, tmp_path, monkeypatch):
    original = pd.DataFrame.to_csv
    written = []

    def full(self, path=None, *arguments, **options):
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(path)
        return original(self, path, *arguments, **options)

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(OSError, match="No space left"):
        five.save(tmp_path / "new")
    assert len(written) == 3
    assert list(tmp_path.iterdir()) == []


def test_places_where_no_folder_can_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(UserError, match="exists already"):
        check_new_folder(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is not a folder"):
        check_new_folder(tmp_path / "file" / "new")
    assert check_new_folder(tmp_path / "x" / "y") == tmp_path / "x" / "y"
    monkeypatch.setattr("os.access", lambda *arguments: False)
    with pytest.raises(UserError, match="may not be written to"):
        check_new_folder(tmp_path / "new")


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"runs": 0}, "runs must be at least 1, not 0"),
        ({"steps": 0}, "steps must lie between 1"),
        ({"steps": 2**31}, "steps must lie between 1"),
        ({"seed": -1}, "seed must lie"),
        ({"seed": 2**32}, "seed must lie"),
        ({"half_life": 0.0}, "half_life must be positive"),
        ({"half_life": float("nan")}, "half_life must be positive"),
        ({"width": 0}, "width must be at least 1"),
        ({"env_settings": {"slope": 1}}, "no parameter 'slope'"),
    ],
)
def test_mistakes(options, fragment):
    with pytest.raises(UserError) as mistake:
        learn(**options)
    assert fragment in str(mistake.value)


def test_unknown_names():
    with pytest.raises(UserError, match="no environment called 'nchan'"):
        bellief.run("nchan")
    with pytest.raises(UserError, match="no agent called 'bib'"):
        bellief.run("nchain", "bib")


def test_words(five):
    assert "5 runs of 60 steps" in repr(five)
