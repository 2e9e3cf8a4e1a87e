"""Feature maps against arrays computed by hand."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from bellief.errors import UserError
from bellief.features import parse

BOUNDS = jnp.array([[-2.0, 0.0], [2.0, 10.0]])
STATE = jnp.array([1.0, 2.5])
UNIT = np.array([0.5, -0.5])


def test_the_papers_ten_functions():
    expected = [1.0] + [
        np.exp(-((1.0 - a) ** 2 + (2.5 - b) ** 2) / 2)
        for a, b in itertools.product((-np.pi / 4, 0, np.pi / 4), (-1, 0, 1))
    ]
    np.testing.assert_allclose(parse("constant+paper", 2)(STATE, BOUNDS), expected, rtol=1e-6)


def test_polynomials_are_all_monomials():
    u, v = UNIT
    np.testing.assert_allclose(parse("poly:2", 2)(STATE, BOUNDS), [u, v, u * u, u * v, v * v], rtol=1e-6)


def test_fourier_leaves_out_the_constant():
    z = (UNIT + 1) / 2
    expected = [np.cos(np.pi * (a * z[0] + b * z[1])) for a, b in itertools.product(range(3), repeat=2)][1:]
    np.testing.assert_allclose(parse("fourier:2", 2)(STATE, BOUNDS), expected, atol=1e-6)


def test_grid_is_widest_at_its_centres():
    ticks = np.linspace(-0.9, 0.9, 3)
    expected = [
        np.exp(-((UNIT[0] - a) ** 2 + (UNIT[1] - b) ** 2) / (2 * 0.9**2)) for a, b in itertools.product(ticks, ticks)
    ]
    np.testing.assert_allclose(parse("rbf:3", 2)(STATE, BOUNDS), expected, rtol=1e-6)


@pytest.mark.parametrize("text", ["constant+raw+rbf:4", "poly:3+fourier:1", "raw", "constant+paper+poly:2"])
def test_sizes_are_what_comes_out(text):
    features = parse(text, 2)
    assert features(STATE, BOUNDS).shape == (features.size(2),)


@pytest.mark.parametrize("text", ["", "rbf", "rbf:1", "poly:x", "constant+nonsense", "raw:2"])
def test_what_is_no_map_is_told(text):
    with pytest.raises(UserError, match="is no feature map; join some of"):
        parse(text, 2)


def test_too_many_features_are_refused():
    with pytest.raises(UserError, match="the most are 2,000"):
        parse("rbf:9", 6)


def test_the_papers_functions_are_for_two_dimensions():
    with pytest.raises(UserError, match="for 2 dimensions, not 4"):
        parse("paper", 4)
