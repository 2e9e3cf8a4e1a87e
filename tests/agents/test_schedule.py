from types import SimpleNamespace

import pytest

from bellief.agents.schedule import steps_of, update_steps


def test_first_steps():
    assert update_steps(10) == [1, 3, 6, 10]
    assert update_steps(14) == [1, 3, 6, 10]
    assert update_steps(15) == [1, 3, 6, 10, 15]
    assert update_steps(1) == [1]
    assert update_steps(0) == []


@pytest.mark.parametrize(("steps", "count"), [(10**5, 446), (10**6, 1413)])
def test_number_of_updates(steps, count):
    found, last, gap = [], 0, 1
    while last + gap <= steps:
        last, gap = last + gap, gap + 1
        found.append(last)
    assert update_steps(steps) == found
    assert len(found) == count


def test_no_gap_is_longer_than_said():
    usual = SimpleNamespace()
    assert steps_of(usual, 21) == [1, 3, 6, 10, 15, 21]
    assert steps_of(usual, 21, 3) == [1, 3, 6, 9, 10, 13, 15, 18, 21]
    assert steps_of(usual, 24, 2) == [1, 3, 5, 6, 8, 10, 12, 14, 15, 17, 19, 21, 23]
    assert steps_of(usual, 5, 1) == [1, 2, 3, 4, 5]
    own = SimpleNamespace(plan_steps=lambda steps: [4])
    assert steps_of(own, 9) == [4]
    assert steps_of(own, 9, 3) == [1, 4, 7]
