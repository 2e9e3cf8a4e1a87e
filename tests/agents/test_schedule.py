import pytest

from bellief.agents.schedule import update_steps


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
