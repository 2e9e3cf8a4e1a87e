"""Agents that decide when to plan: the compiled loop, its snapshots, Gymnasium environments, and what is refused."""

import jax
import numpy as np
import pytest

import bellief
from bellief import UserError
from bellief.agents import rlsvi
from bellief.envs import make
from bellief.experiments import self_scheduled_loop
from bellief.experiments.compiled_environments import make_tables
from bellief.experiments.compiled_steps import batch_keys
from bellief.experiments.event_loop import Plan, Reading, Snapshot
from bellief.experiments.task import Case, open_task

CONFIG = rlsvi.Config(horizon=10, schedule="eager")
READINGS = [1, 20, 21, 30, 60]


def given(width):
    environment = make("riverswim")
    keys = batch_keys(0, environment.name, "rlsvi", range(width))
    tables = make_tables(environment.outcomes, environment.time_limit)
    return keys, tables, rlsvi, CONFIG, environment.spaces()


def batch(resume=None, width=2):
    return list(self_scheduled_loop.run_batch(*given(width), READINGS, 100.0, resume))


def snapshots(stream):
    """Copied at once, because the next segment takes the arrays over."""
    return [event._replace(runs=jax.tree.map(np.array, event.runs)) for event in stream if isinstance(event, Snapshot)]


def assert_equal(first, second):
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def two():
    return batch()


def test_events_and_sums(two):
    readings = [event for event in two if isinstance(event, Reading)]
    assert [reading.step for reading in readings] == READINGS
    plans = [event for event in two if isinstance(event, Plan)]
    assert [plan.step for plan in plans] == READINGS
    # The last plan's report is there even where no plan came since the reading before.
    assert all((plan.info.value_mean != 0).all() for plan in plans)
    agent = two[-1].agent
    assert agent.belief.counts.sum((1, 2, 3)).tolist() == [60, 60]
    # What was earned is what the belief has seen.
    seen = agent.belief.rewards
    np.testing.assert_allclose(readings[-1].total, np.asarray(seen.count * seen.mean).sum((1, 2)), rtol=1e-4)


def test_a_run_does_not_depend_on_the_others_in_its_batch(two):
    assert_equal(batch(width=1)[-1], jax.tree.map(lambda leaf: leaf[:1], two[-1]))


def test_a_snapshot_goes_on_bit_for_bit(two):
    kept = snapshots(self_scheduled_loop.run_batch(*given(2), READINGS, 100.0))[1]
    assert kept.event == 20
    again = batch(resume=kept)
    steps = [event.step for event in again if isinstance(event, Reading)]
    assert steps == READINGS[2:]
    assert_equal(again[-1], two[-1])
    assert_equal(
        [event for event in again if isinstance(event, Plan | Reading)],
        [event for event in two if isinstance(event, Plan | Reading) and event.step > 20],
    )


def test_long_stretches_have_snapshots_that_change_nothing(two, monkeypatch):
    monkeypatch.setattr(self_scheduled_loop, "MOST_STEPS", 25)
    cut = batch()
    assert [event.event for event in cut if isinstance(event, Snapshot)] == [1, 20, 21, 25, 30, 50, 60]
    assert_equal(cut[-1], two[-1])


def test_saved_runs_have_the_shapes_they_should(two):
    shapes = self_scheduled_loop.run_shapes(*given(2))
    snapshot = next(event for event in two if isinstance(event, Snapshot))
    assert [leaf.shape for leaf in jax.tree.leaves(shapes)] == [leaf.shape for leaf in jax.tree.leaves(snapshot.runs)]


@pytest.mark.slow
def test_deep_sea_is_solved_in_about_two_rounds_of_its_width():
    size, episodes = 6, 40
    steps = tuple(range(size, size * episodes + 1, size))
    result = bellief.run("deep-sea", "bbi", steps=size * episodes, runs=2, env_settings={"size": size}, readings=steps)
    returns = np.diff(result.total[:, np.isin(result.step, steps)], axis=1, prepend=0)
    assert ((returns > 0.5).sum(1) >= episodes - 3 * size).all()
    assert (returns[:, -10:] > 0.5).all()


def test_the_paper_s_schedule_is_a_setting():
    settings = {"schedule": "triangular", "horizon": 10}
    result = bellief.run("nchain", "rlsvi", steps=30, runs=2, settings=settings, longest_gap=5)
    assert result.updates > 7


@pytest.mark.parametrize("given", [{"longest_gap": 5}, {"device": "gpu"}])
def test_what_goes_with_the_paper_s_schedule_alone_is_refused(given):
    with pytest.raises(UserError, match="schedule=triangular"):
        bellief.run("nchain", "rlsvi", steps=30, runs=2, **given)


@pytest.fixture(scope="module")
def lake():
    pytest.importorskip("gymnasium")
    return open_task("FrozenLake-v1", {})


def lake_case(lake):
    places = lake.places("auto", 2, rlsvi, CONFIG)
    return Case(lake, "rlsvi", rlsvi, CONFIG, 0, [], [5, *range(55, 61), 80], 100.0, places)


def lake_events(lake, resume=None, width=2):
    return lake_case(lake).events(range(width), resume)


def test_gymnasium_environments(lake):
    two, one = list(lake_events(lake)), list(lake_events(lake, width=1))
    assert_equal(one[-1], jax.tree.map(lambda leaf: leaf[:1], two[-1]))
    episodes = [event for event in one if type(event).__name__ == "Episode"]
    assert sum(episode.length for episode in episodes) == episodes[-1].step <= 80
    agent = two[-1].agent
    assert agent.belief.counts.sum((1, 2, 3)).tolist() == [80, 80]


def test_a_gymnasium_snapshot_goes_on_bit_for_bit(lake):
    *events, last = lake_events(lake)
    found = [event for event in events if isinstance(event, Snapshot) and event.event > 50]
    # Before the next step nobody plans, so that its action must come from the snapshot.
    kept = next(event for event in found if not event.host["due"].any())
    *again, end = lake_events(lake, kept)
    assert [event.step for event in again if isinstance(event, Reading)][-1] == 80
    assert_equal(end, last)
    shapes = lake_case(lake).shapes(range(2))
    assert [leaf.shape for leaf in jax.tree.leaves(shapes)] == [leaf.shape for leaf in jax.tree.leaves(kept.runs)]
