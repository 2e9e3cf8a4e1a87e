import sys

import numpy as np
import pytest

from bellief.evaluation.posterior import ValuePosterior


@pytest.fixture
def make_posterior():
    """A `ValuePosterior` from draws alone."""

    def make(samples, method="joint", level=0.9, warnings=()):
        samples = np.asarray(samples, dtype=float)
        states = samples.shape[1]
        return ValuePosterior(
            samples=samples,
            start=np.eye(states)[0],
            method=method,
            discount=0.99,
            actions=2,
            transitions=1234,
            sd_exists=np.ones(states, dtype=bool),
            diagnostics={"warnings": list(warnings)},
            level=level,
        )

    return make


@pytest.fixture
def draws():
    """Named sets of draws: ordinary, heavy-tailed, all equal, one draw, few, many states, a spike with outliers."""
    generator = np.random.default_rng(0)
    spike = np.full((200, 3), 2.0)
    spike[:3] = [[-50.0], [7.0], [1e6]]
    return {
        "ordinary": generator.normal(10, [1, 5, 20], (500, 3)),
        "heavy": 30 * generator.standard_t(1, (1000, 3)),
        "equal": np.full((50, 3), -4.0),
        "single": np.array([[1.0, 2.0, 3.0]]),
        "few": generator.normal(size=(3, 3)),
        "wide": generator.normal(size=(100, 40)),
        "spike": spike,
        "huge": 1e12 * generator.normal(size=(100, 2)),
        "tiny": 1e-12 * generator.normal(size=(100, 2)),
    }


@pytest.fixture(autouse=True)
def _no_pyplot():
    """No picture of ours may touch pyplot."""
    known = "matplotlib.pyplot" in sys.modules
    yield
    assert known or "matplotlib.pyplot" not in sys.modules
