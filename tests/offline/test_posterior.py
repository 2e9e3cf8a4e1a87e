"""Summaries of draws."""

import numpy as np
import pytest

from bellief.offline import ValuePosterior


def posterior(samples, **changes):
    samples = np.asarray(samples, dtype=float)
    states = samples.shape[1]
    fields = {
        "samples": samples,
        "start": np.full(states, 1 / states),
        "method": "joint",
        "discount": 0.9,
        "actions": 2,
        "transitions": 10,
        "sd_exists": np.ones(states, dtype=bool),
        "diagnostics": {"warnings": []},
    }
    return ValuePosterior(**{**fields, **changes})


def test_mean_and_sd():
    samples = np.random.default_rng(0).normal(size=(50, 3))
    result = posterior(samples)
    np.testing.assert_allclose(result.mean, samples.mean(0))
    np.testing.assert_allclose(result.sd, np.sqrt(((samples - samples.mean(0)) ** 2).sum(0) / 49))


def test_interval_is_made_of_order_statistics():
    """Of 19 draws the 5% quantile is the first, the 95% quantile the last: a further one is outside 2 in 20 times."""
    samples = np.random.default_rng(1).permutation(19.0 * np.arange(19))[:, None]
    low, high = posterior(samples).interval(0.9)
    np.testing.assert_allclose(low, samples.min())
    np.testing.assert_allclose(high, samples.max())
    assert posterior(samples).quantile(0.5) == np.median(samples)


def test_interval_covers_a_further_draw_as_often_as_it_says():
    generator = np.random.default_rng(2)
    trials = 20_000
    draws, further = generator.normal(size=(trials, 39)), generator.normal(size=trials)
    low, high = posterior(draws.T).interval(0.9)
    covered = np.mean((low <= further) & (further <= high))
    assert covered == pytest.approx(0.9, abs=4.5 * np.sqrt(0.9 * 0.1 / trials))


def test_start_value_uses_whole_value_functions():
    """Two states that always sum to zero: the start value is certain although neither state's value is."""
    noise = np.random.default_rng(3).normal(size=100)
    summary = posterior(np.stack([noise, -noise], axis=1)).start_summary()
    assert summary == {"mean": 0.0, "sd": 0.0, "low": 0.0, "high": 0.0}


def test_sd_that_does_not_exist_concerns_the_start_only_where_it_can_be_first():
    samples = np.random.default_rng(4).normal(size=(20, 2))
    half = np.array([True, False])
    assert posterior(samples, sd_exists=half, start=np.array([1.0, 0.0])).start_summary()["sd"] is not None
    assert posterior(samples, sd_exists=half).start_summary()["sd"] is None


def test_level_of_the_document():
    samples = np.random.default_rng(5).normal(size=(200, 2))
    result = posterior(samples, level=0.5)
    document = result.to_dict()
    assert document["level"] == 0.5
    low, high = result.interval(0.5)
    assert [row["low"] for row in document["per_state"]] == low.tolist()
    assert [row["high"] for row in document["per_state"]] == high.tolist()
    assert result.to_dict(0.9)["start"]["high"] > document["start"]["high"]


def test_one_draw_has_no_spread():
    document = posterior([[1.0, 2.0]]).to_dict()
    assert document["per_state"][1] == {"state": 1, "mean": 2.0, "sd": 0.0, "low": 2.0, "high": 2.0}


def test_frame_and_words():
    result = posterior(np.random.default_rng(6).normal(size=(20, 2)))
    frame = result.to_pandas()
    assert frame.columns.tolist() == ["mean", "sd", "low", "high"]
    np.testing.assert_array_equal(frame["mean"], result.mean)
    assert "joint" in repr(result)
    assert "<" in result._repr_html_()


def test_plot_returns_axes():
    from matplotlib.axes import Axes

    assert isinstance(posterior(np.random.default_rng(7).normal(size=(30, 2))).plot(), Axes)
