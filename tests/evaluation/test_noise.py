"""Random numbers by key against SciPy's laws, and their independence of how they are asked for."""

import numpy as np
import pytest
from scipy import stats

from bellief.evaluation import noise

KEYS = noise.keys(5, noise.CELL, np.arange(40))
DRAWS = np.arange(500)


@pytest.mark.parametrize(
    "shape",
    [0.01, 0.02, 0.1, 0.37, 0.5, 0.93, 1.0, 1.0001, 1.7, 2.0, 3.0, 4.0, 2.5, 3.999, 7.0, 7.3, 30.0, 412.7, 1e4, 1e6],
)
def test_gamma(check, shape):
    drawn = noise.gamma(np.full(40, shape), KEYS, DRAWS).ravel()
    check.same_law(drawn, stats.gamma(shape))


def test_normal_and_uniform(check):
    check.same_law(noise.normal(KEYS, DRAWS).ravel(), stats.norm)
    check.same_law(noise.uniform(KEYS, DRAWS).ravel(), stats.uniform)
    key, draw = np.repeat(KEYS, 500), np.tile(DRAWS, 40)
    np.testing.assert_array_equal(noise.normal_at(key, draw), noise.normal(KEYS, DRAWS).T.ravel())
    np.testing.assert_array_equal(noise.uniform_at(key, draw), noise.uniform(KEYS, DRAWS).T.ravel())


def test_numbers_are_uncorrelated():
    """Between draws of a key, keys, purposes, seeds, and a draw's further numbers."""
    many = 40_000
    keys, draws = noise.keys(0, noise.CELL, np.arange(many)), np.arange(8)
    numbers = noise.uniform(keys, draws)
    others = [
        *numbers[1:],
        np.roll(numbers[0], 1),
        noise.uniform(noise.keys(0, noise.REST, np.arange(many)), draws[:1])[0],
        noise.uniform(noise.keys(1, noise.CELL, np.arange(many)), draws[:1])[0],
        noise.uniform(noise.keys(0, noise.CELL, np.arange(many), 1), draws[:1])[0],
        noise.uniform(keys, draws[:1], 1)[0],
        noise.uniform(keys, draws[:1], 2)[0],
    ]
    # Correlations have the error 1 / sqrt(many); 4.5 of them are exceeded once in 10^5.
    for other in others:
        assert abs(np.corrcoef(numbers[0], other)[0, 1]) < 4.5 / np.sqrt(many)
        assert abs(np.corrcoef((numbers[0] - 0.5) ** 2, (other - 0.5) ** 2)[0, 1]) < 4.5 / np.sqrt(many)


@pytest.mark.parametrize("shape", [0.3, 1.0, 3.0, 5.5])
def test_batches_change_nothing(shape):
    whole = noise.gamma(np.full(40, shape), KEYS, DRAWS)
    part = noise.gamma(np.full(7, shape), KEYS[3:10], DRAWS[100:117])
    np.testing.assert_array_equal(part, whole[100:117, 3:10])


def test_blocks_change_nothing(monkeypatch):
    """Shapes of all kinds side by side, in more columns and draws than a block has."""
    shape = np.tile([0.3, 1.0, 3.0, 5.5, 0.9], 8)
    whole = noise.gamma(shape, KEYS, DRAWS), noise.normal(KEYS, DRAWS), noise.uniform(KEYS, DRAWS)
    for block in (7, 64, 1 << 20):
        monkeypatch.setattr(noise, "BLOCK", block)
        parts = noise.gamma(shape, KEYS, DRAWS), noise.normal(KEYS, DRAWS), noise.uniform(KEYS, DRAWS)
        for one, other in zip(parts, whole, strict=True):
            np.testing.assert_array_equal(one, other)


def test_every_key_is_its_own():
    table = noise.keys(3, noise.CELL, np.arange(300)[:, None], np.arange(300))
    assert len(np.unique(table)) == table.size
