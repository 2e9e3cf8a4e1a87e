"""Draws of rows against Dirichlet laws."""

import numpy as np
import pytest
from scipy import stats

from bellief.evaluation import rows

OUTCOMES, WEIGHT = 6, 0.7
DRAWS = np.arange(6000)


def belief(whole=False, weight=WEIGHT):
    """Two rows: counts 3 and 1 of outcomes 1 and 4, and nothing."""
    held = rows.Rows(
        np.array([7, 8]), np.array([0, 2, 2]), np.array([1, 4]), np.array([3.0, 1.0]), np.full(2, weight), OUTCOMES
    )
    return rows.expand(held)[0] if whole else held


def table(drawn, held):
    found = np.zeros((len(drawn.cell_share), len(held.row), OUTCOMES))
    found[:, held.row_of_cell(), held.outcome] = drawn.cell_share
    np.add.at(found, (drawn.atom_draw, drawn.atom_row, drawn.atom_outcome), drawn.atom_share)
    return found


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("weight", [0.1, 0.7, 3.0])
def test_rows_are_dirichlet(check, whole, weight):
    held = belief(whole, weight)
    found = table(rows.sample(held, 1, DRAWS), held)
    np.testing.assert_allclose(found.sum(-1), 1)
    shapes = np.full((2, OUTCOMES), weight / OUTCOMES)
    shapes[0, [1, 4]] += 3, 1
    total = shapes.sum(-1)
    for row, outcome in ((0, 1), (0, 4)):
        shape = shapes[row, outcome]
        check.same_law(found[:, row, outcome], stats.beta(shape, total[row] - shape))
    # Unseen outcomes: of three together, because a single one is nearly always at one of the ends.
    share = shapes[1, :3].sum()
    if weight > 0.5:
        check.same_law(found[:, 1, :3].sum(-1), stats.beta(share, total[1] - share))
    mean = shapes / total[:, None]
    error = np.sqrt(mean * (1 - mean) / (total[:, None] + 1) / len(DRAWS))
    assert (np.abs(found.mean(0) - mean) < 4.5 * error).all()
    variance = mean * (1 - mean) / (total[:, None] + 1)
    fourth = ((found - mean) ** 2).std(0) / np.sqrt(len(DRAWS))
    assert (np.abs(((found - mean) ** 2).mean(0) - variance) < 4.5 * fourth).all()
    # Products of two outcomes of one row.
    pair = found[:, 0, 1] * found[:, 0, 2]
    expected = shapes[0, 1] * shapes[0, 2] / (total[0] * (total[0] + 1))
    assert abs(pair.mean() - expected) < 4.5 * pair.std() / np.sqrt(len(DRAWS))


def test_an_outcome_stands_in_one_place():
    held = belief(weight=3.0)
    drawn = rows.sample(held, 1, DRAWS)
    code = (drawn.atom_draw * 2 + drawn.atom_row) * OUTCOMES + drawn.atom_outcome
    assert len(np.unique(code)) == len(code)
    assert not np.isin(drawn.atom_outcome[drawn.atom_row == 0], [1, 4]).any()


def test_a_row_depends_on_nothing_else():
    held = belief()
    whole = table(rows.sample(held, 1, DRAWS[:50]), held)
    alone, cells = rows.restrict(held, np.array([0]))
    assert cells.tolist() == [0, 1]
    found = table(rows.sample(alone, 1, DRAWS[20:30]), alone)
    np.testing.assert_array_equal(found[:, 0], whole[20:30, 0])
    other = table(rows.sample(held, 2, DRAWS[:50]), held)
    assert not np.allclose(other, whole)


@pytest.mark.parametrize("numbers", [1, 4, 1000])
def test_pieces_are_the_whole(numbers):
    held = belief()
    spans = rows.spans(held, numbers)
    assert [one for span in spans for one in range(2)[span]] == [0, 1]
    drawn = rows.joined([rows.sample(rows.span(held, span)[0], 1, DRAWS[:50]) for span in spans], spans)
    np.testing.assert_array_equal(table(drawn, held), table(rows.sample(held, 1, DRAWS[:50]), held))


def test_mean():
    chance, rest = rows.mean(belief())
    np.testing.assert_allclose(chance, np.array([3, 1]) / (4 + WEIGHT))
    np.testing.assert_allclose(rest, [WEIGHT / (4 + WEIGHT), 1])


def test_atoms_needed():
    """0.1 / 1.1 to the power of the number of atoms is what lies beyond them, in expectation."""
    (count,) = rows.atoms_needed(np.array([0.1]), np.zeros(1))
    assert (0.1 / 1.1) ** count < rows.REMAINDER <= (0.1 / 1.1) ** (count - 1)
    assert rows.atoms_needed(np.array([0.1, 0.0]), np.array([1e9, 0.0])).tolist() == [1, 0]


def test_tiny_weights_give_whole_rows():
    held = belief(weight=1e-6)
    found = table(rows.sample(held, 3, DRAWS[:200]), held)
    np.testing.assert_allclose(found.sum(-1), 1)
    assert (found[:, 1].max(-1) > 0.999).mean() > 0.99
