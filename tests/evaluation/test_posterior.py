"""Summaries of draws."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from bellief.errors import UserError
from bellief.evaluation import ValuePosterior


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


def test_shortest_interval():
    """Of an exponential distribution the shortest 80% interval begins at its peak, zero; the equal-tailed does not."""
    samples = stats.expon.ppf((np.arange(4999) + 0.5) / 4999)[:, None]
    low, high = posterior(samples).interval(0.8, "highest-density")
    assert low == pytest.approx(0, abs=1e-3)
    assert high == pytest.approx(stats.expon.ppf(0.8), rel=0.01)
    with pytest.raises(UserError, match=r"no interval 'widest'"):
        posterior(samples).interval(0.8, "widest")
    with pytest.raises(UserError, match=r"level must lie"):
        posterior(samples).interval(1.5)


def test_shortest_interval_covers_a_further_draw():
    generator = np.random.default_rng(8)
    draws, further = generator.normal(size=(20_000, 99)), generator.normal(size=20_000)
    low, high = posterior(draws.T).interval(0.8, "highest-density")
    # Choosing the shortest of many intervals costs a little coverage with few draws.
    assert 0.75 < np.mean((low <= further) & (further <= high)) < 0.81


def test_statements():
    samples = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0]])
    result = posterior(samples, state_labels=("ill", "well"))
    assert result.prob(lambda v: v > 3.5) == 0.75
    assert result.prob(lambda v: v > 2.5, "ill") == 0.5
    assert result.prob(lambda v: 5 < v < 7.5 if np.ndim(v) == 0 else None, "well") == 0.5
    with pytest.raises(UserError, match=r"true or false"):
        result.prob(lambda v: v + 1)
    with pytest.raises(UserError, match=r"no state 'dead'"):
        result.prob(lambda v: v > 1, "dead")


def test_saved_posteriors_come_back(tmp_path):
    samples = np.random.default_rng(9).normal(size=(30, 2))
    first = posterior(samples, state_labels=("a", "b"), diagnostics={"warnings": ["careful"], "mdps": 30})
    again = ValuePosterior.load(first.save(tmp_path / "value.npz"))
    np.testing.assert_array_equal(again.samples, first.samples)
    assert again.to_dict() == first.to_dict()
    with pytest.raises(UserError, match=r"ends in .npz"):
        first.save(tmp_path / "value.pickle")
    assert [path.name for path in tmp_path.iterdir()] == ["value.npz"]


@pytest.mark.parametrize("damage", ["cut", "text", "pickle", "shape", "missing"])
def test_damaged_files(tmp_path, damage):
    path = posterior(np.zeros((30, 2))).save(tmp_path / "value.npz")
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "text":
        path.write_text("hello")
    elif damage == "pickle":
        np.savez(path, about=np.array([{"a": 1}], dtype=object))
    elif damage == "shape":
        with np.load(path) as archive:
            arrays = dict(archive)
        np.savez(path, **{**arrays, "start": np.ones(3)})
    else:
        path.unlink()
    with pytest.raises(UserError, match=r"value\.npz"):
        ValuePosterior.load(path)


@pytest.mark.filterwarnings("ignore")
def test_arviz():
    pytest.importorskip("arviz")
    result = posterior(np.random.default_rng(10).normal(size=(30, 2)), state_labels=("a", "b"))
    data = result.to_arviz()
    np.testing.assert_allclose(data.posterior["value"].sel(state="b").values[0], result.samples[:, 1])
    np.testing.assert_allclose(data.posterior["start_value"].values[0], result.start_samples)


def test_arviz_of_the_future(monkeypatch):
    """From 1.0 on groups are keys of one dictionary."""
    calls = []
    stand_in = SimpleNamespace(__version__="1.2.0", from_dict=lambda *given, **named: calls.append((given, named)))
    monkeypatch.setitem(sys.modules, "arviz", stand_in)
    posterior(np.zeros((5, 2))).to_arviz()
    ((groups,), named) = calls[0]
    assert groups["posterior"]["value"].shape == (1, 5, 2)
    assert named["dims"] == {"value": ["state"]}


def test_explanations():
    result = posterior(
        np.random.default_rng(11).normal(size=(400, 2)),
        diagnostics={"warnings": ["careful"], "effective_visits": 12.0},
    )
    said = " ".join(result.explain())
    assert "400 independent draws" in said
    assert "12 times" in said
    assert said.endswith("careful")
    # The error of an interval's end: sqrt(p (1 - p) / n) over the density there.
    error = np.sqrt(0.05 * 0.95 / 400) / (stats.norm.pdf(stats.norm.ppf(0.05)) * np.sqrt(2))
    assert result._interval_error() == pytest.approx(error, rel=0.6)


def test_weights_and_doublings_are_told():
    diagnostics = {"warnings": [], "mdps": 10, "effective_sample_size": 3.2, "sigma_doublings": 4, "resamples": 1}
    said = " ".join(posterior(np.zeros((30, 2)), method="gaussian", diagnostics=diagnostics).explain())
    assert "3.2 of 10" in said
    assert "doubled 4 times" in said


def test_labels_in_every_output():
    result = posterior(np.random.default_rng(12).normal(size=(30, 2)), state_labels=("<ill>", "well"))
    assert result.to_pandas().index.tolist() == ["<ill>", "well"]
    assert "&lt;ill&gt;" in result._repr_html_()
    assert "<ill>" not in result._repr_html_()
    ticks = [tick.get_text() for tick in result.plot(["well"]).get_yticklabels()]
    assert ticks == ["well"]
