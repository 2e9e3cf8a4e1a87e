"""Several events in one call: the same things happen in the same order, however many share a call."""

import numpy as np
import pytest

from bellief.experiments.event_loop import Plan, Reading, Snapshot, run_many_events

PLANS, READINGS = [1, 3, 6, 10, 15, 21], [2, 10, 14, 20]


class Counter:
    """Runs that know how many steps they made; plans add a hundred."""

    def __init__(self):
        self.calls = []

    def begin(self):
        return np.zeros(2), {"total": np.zeros(2)}

    def advance_and_plan(self, first, ends, plans, count, runs):
        self.calls.append(int(count))
        added, seen, info = np.zeros((2, len(ends))), np.zeros((2, len(ends))), np.zeros((2, len(ends)))
        before = first
        for row in range(count):
            added[:, row] = ends[row] - before
            runs = runs + (ends[row] - before)
            seen[:, row] = runs
            before = ends[row]
            if plans[row]:
                runs = runs + 100
                info[:, row] = ends[row] + 1
        return runs, ({"total": added}, seen, info)


def read(step, seen, host):
    yield Reading(step, host["total"], seen)


def happenings(together, resume=None):
    counter = Counter()
    found = list(run_many_events(counter.begin, counter.advance_and_plan, read, PLANS, READINGS, resume, together))
    return counter, found


def told(events):
    return [
        (type(event).__name__, event.step, *(np.asarray(part).tolist() for part in event[1:]))
        for event in events
        if isinstance(event, Plan | Reading)
    ]


@pytest.fixture(scope="module")
def alone():
    return happenings(1)[1]


def test_how_many_share_a_call_changes_nothing(alone):
    counter, found = happenings(64)
    assert max(counter.calls) > 1
    assert told(found) == told(alone)
    assert [step for kind, step, *_ in told(alone) if kind == "Plan"] == [1, 3, 6, 10, 15]
    assert [event.total.tolist() for event in alone if isinstance(event, Reading)] == [[s, s] for s in READINGS]
    np.testing.assert_array_equal(found[-1], alone[-1])


def test_going_on_from_any_snapshot(alone):
    snapshots = [event for event in alone if isinstance(event, Snapshot)]
    assert len(snapshots) == len({step - 1 for step in PLANS} | set(READINGS))
    for snapshot in snapshots:
        rest = told(happenings(64, snapshot)[1])
        assert rest == told(alone)[len(told(alone)) - len(rest) :]
        assert all(step > snapshot.event for _, step, *_ in rest)
