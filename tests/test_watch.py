"""Computations stop soon after they are told to, wherever they are."""

import threading

import numpy as np
import pytest

import bellief
from bellief import watch
from bellief.watch import Stopped, pause_point, shared_pause_point, watched


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 30, 4001)
    return bellief.Transitions.from_arrays(state[:-1], rng.integers(0, 2, 4000), rng.normal(size=4000), state[1:])


QUESTIONS = {
    "evaluate": lambda log: bellief.evaluate(log, draws=5000),
    "compare": lambda log: bellief.compare(log, ["uniform", "behaviour"]),
    "improve": lambda log: bellief.improve(log),
    "collect": lambda log: bellief.collect_next(log),
    "check": lambda log: bellief.check(log),
}


class Countdown(threading.Event):
    """Is set once it has been asked so many times: stops a computation in its midst."""

    def __init__(self, left):
        super().__init__()
        self.left = left

    def is_set(self):
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_computation_stops_at_once_and_on_its_way(log, name, after):
    stop = Countdown(after)
    with watched(stop), pytest.raises(Stopped):
        QUESTIONS[name](log)
    assert stop.left >= -1 - 8  # at most what other threads had begun


@pytest.mark.parametrize("name", ["evaluate", "check"])
def test_watching_changes_no_number(log, name):
    told = []
    with watched(threading.Event(), told.append):
        first = QUESTIONS[name](log).to_dict()
    assert QUESTIONS[name](log).to_dict() == first
    assert told[0] == 0
    assert all(0 <= fraction < 1 for fraction in told)


def test_nobody_watches_outside():
    stop = threading.Event()
    stop.set()
    with watched(stop):
        point = shared_pause_point()
        with pytest.raises(Stopped):
            pause_point()
    pause_point()  # nobody watches here
    with pytest.raises(Stopped):
        point()  # ... but this was made where somebody did
    assert watch.shared_pause_point()() is None
