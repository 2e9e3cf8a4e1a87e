"""Agents that plan when something has happened: the compiled loop, its snapshots, and real environments."""

import jax
import numpy as np
import pytest

import bellief
from bellief import UserError
from bellief.agents import bbi_learned
from bellief.envs import make
from bellief.experiments import asked, loop
from bellief.experiments.chunks import chunk_keys
from bellief.experiments.drive import Plan, Reading, Snapshot


def chunk(resume=None, width=2, steps=60):
    environment = make("riverswim")
    keys = chunk_keys(0, environment.name, "bbi-learned", range(width))
    tables = loop.make_tables(environment.outcomes, environment.time_limit)
    given = (keys, tables, bbi_learned, bbi_learned.Config(most_sweeps=20), environment.spaces())
    return list(asked.run_chunk(*given, [20, 30, steps], 100.0, resume))


def test_events_and_sums():
    events = chunk()
    readings = [event for event in events if isinstance(event, Reading)]
    assert [reading.step for reading in readings] == [20, 30, 60]
    assert sum(isinstance(event, Plan) for event in events) == 3
    agent = events[-1].agent
    assert agent.belief.rows.visits.sum((1, 2)).tolist() == [60, 60]
    # What was earned is what the belief has seen.
    seen = agent.belief.rewards.seen
    np.testing.assert_allclose(readings[-1].total, np.asarray(seen.count * seen.mean).sum((1, 2)), rtol=1e-4)


def test_a_run_does_not_depend_on_those_beside_it():
    two, three = chunk(width=2)[-1], chunk(width=3)[-1]
    for first, second in zip(jax.tree.leaves(two.agent), jax.tree.leaves(three.agent), strict=True):
        np.testing.assert_array_equal(first, second[:2])


def test_a_snapshot_goes_on_bit_for_bit():
    events = chunk()
    # The next segment takes the arrays over, so that a snapshot is copied when it comes.
    environment = make("riverswim")
    keys = chunk_keys(0, environment.name, "bbi-learned", range(2))
    tables = loop.make_tables(environment.outcomes, environment.time_limit)
    given = (keys, tables, bbi_learned, bbi_learned.Config(most_sweeps=20), environment.spaces())
    stream = asked.run_chunk(*given, [20, 30, 60], 100.0)
    kept = next(event for event in stream if isinstance(event, Snapshot))
    kept = kept._replace(runs=jax.tree.map(np.array, kept.runs))
    again = chunk(resume=kept)
    assert [event.step for event in again if isinstance(event, Reading)] == [30, 60]
    for first, second in zip(jax.tree.leaves(events[-1].agent), jax.tree.leaves(again[-1].agent), strict=True):
        np.testing.assert_array_equal(first, second)


def test_saved_runs_have_the_shapes_they_should():
    environment = make("riverswim")
    keys = chunk_keys(0, environment.name, "bbi-learned", range(2))
    tables = loop.make_tables(environment.outcomes, environment.time_limit)
    shapes = asked.run_shapes(keys, tables, bbi_learned, bbi_learned.Config(), environment.spaces())
    snapshot = next(event for event in chunk() if isinstance(event, Snapshot))
    assert [leaf.shape for leaf in jax.tree.leaves(shapes)] == [leaf.shape for leaf in jax.tree.leaves(snapshot.runs)]


def test_deep_sea_is_solved_in_about_two_rounds_of_its_width():
    size, episodes = 6, 40
    steps = tuple(range(size, size * episodes + 1, size))
    result = bellief.run(
        "deep-sea", "bbi-learned", steps=size * episodes, runs=2, env_settings={"size": size}, readings=steps
    )
    returns = np.diff(result.total[:, np.isin(result.step, steps)], axis=1, prepend=0)
    assert ((returns > 0.5).sum(1) >= episodes - 3 * size).all()
    assert (returns[:, -10:] > 0.5).all()


def test_the_paper_s_schedule_is_a_setting_and_a_gap_belongs_to_it():
    result = bellief.run("nchain", "bbi-learned", steps=30, runs=2, settings={"schedule": "triangular"}, longest_gap=5)
    assert result.updates > 7
    with pytest.raises(UserError, match="schedule"):
        bellief.run("nchain", "bbi-learned", steps=30, runs=2, longest_gap=5)


def test_real_environments_step_by_step():
    pytest.importorskip("gymnasium")
    settings = {"most_sweeps": 20}
    result = bellief.run("FrozenLake-v1", "bbi-learned", steps=150, runs=2, settings=settings)
    again = bellief.run("FrozenLake-v1", "bbi-learned", steps=150, runs=1, settings=settings)
    np.testing.assert_array_equal(result.total[:1], again.total)
    episodes = result.episodes
    assert set(episodes["run"]) == {0, 1}
    own = episodes[episodes["run"] == 0]
    assert own["length"].sum() == own["step"].max() <= 150
    assert own["reward"].sum() == pytest.approx(result.total[0, np.searchsorted(result.step, own["step"].max())], abs=1)
