"""Whole runs: BBI with its optimistic rule learns the chain."""

import numpy as np
import pytest

import bellief

pytestmark = pytest.mark.long

SETTINGS = {"rule": "optimistic"}


def test_optimistic_bbi_finds_the_far_end_of_the_chain(request):
    """A policy that never leaves the start earns 2 a step."""
    seed = request.config.getoption("--statistics-seed")
    result = bellief.run("nchain", "bbi-paper", 5000, 10, seed, settings=SETTINGS)
    assert (result.gain >= 3.6).sum() >= 8
    assert result.final_average_reward.mean() > 3.3


@pytest.mark.slow
def test_optimistic_bbi_learns_the_chain(request):
    seed = request.config.getoption("--statistics-seed")
    result = bellief.run("nchain", "bbi-paper", 100_000, 20, seed, settings=SETTINGS)
    assert (result.gain >= 3.6).sum() >= 19
    final = result.final_average_reward
    assert abs(final.mean() - 3.677) <= 3 * final.std(ddof=1) / np.sqrt(20)
