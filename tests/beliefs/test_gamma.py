import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief.beliefs.gamma import sample_log_gamma

SHAPES = (0.003, 0.3, 0.5, 0.999, 1.0, 2.5, 100.0, 1e6)
DRAWS = 20_000


@pytest.fixture(scope="module")
def draw():
    """All shapes in one array, so that fast and slow elements share the rejection loop."""

    def of_type(key, dtype):
        shapes = jnp.broadcast_to(jnp.asarray(SHAPES, dtype)[:, None], (len(SHAPES), DRAWS))
        return sample_log_gamma(key, shapes)

    return jax.jit(of_type, static_argnums=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_have_the_law_of_log_gamma(key, check, draw, dtype):
    with jax.enable_x64(dtype == np.float64):
        draws = np.asarray(draw(key, dtype))
    assert draws.dtype == dtype
    for row, shape in zip(draws, SHAPES, strict=True):
        check.same_law(row, stats.loggamma(shape))


def test_draws_are_independent(key, draw):
    draws = np.asarray(draw(key, np.float32))
    ranks = stats.rankdata(draws, axis=1)
    # Two neighbouring columns, and two neighbouring shapes; about sixteen comparisons.
    reach = stats.norm.isf(1e-5 / 2 / 16) / np.sqrt(DRAWS - 1)
    for row in ranks:
        assert abs(np.corrcoef(row[1:], row[:-1])[0, 1]) < reach
    for first, second in zip(ranks[1:], ranks[:-1], strict=True):
        assert abs(np.corrcoef(first, second)[0, 1]) < reach


def test_empty_array():
    assert sample_log_gamma(jax.random.key(0), jnp.zeros((0, 3))).shape == (0, 3)


def test_a_draw_does_not_depend_on_how_many_follow():
    # Rows are filled up to whole vectors; what fills them must stay outside.
    key, shapes = jax.random.key(3), jnp.linspace(0.1, 3.0, 19)
    np.testing.assert_allclose(sample_log_gamma(key, shapes[:11]), sample_log_gamma(key, shapes)[:11], atol=1e-5)
