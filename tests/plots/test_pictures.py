import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from bellief.errors import UserError
from bellief.plots import style
from bellief.plots.curves import plot_curve
from bellief.plots.value_pictures import Comparison, comparison_figure, plot_comparison, plot_posterior

KINDS = ("ordinary", "heavy", "equal", "single", "few", "wide", "spike", "huge", "tiny")


@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_of_every_kind_are_drawn(make_posterior, draws, kind):
    axes = plot_posterior(make_posterior(draws[kind]))
    assert style.to_bytes(axes.figure, "png").startswith(b"\x89PNG")
    assert np.diff(axes.get_xlim()) > 0


def test_rows_are_states_and_else_the_start(make_posterior, draws):
    def labels(axes):
        return [text.get_text() for text in axes.get_yticklabels()]

    assert labels(plot_posterior(make_posterior(draws["ordinary"]))) == ["state 2", "state 1", "state 0"]
    assert labels(plot_posterior(make_posterior(draws["wide"]))) == ["start"]
    assert labels(plot_posterior(make_posterior(draws["wide"]), [39, 3])) == ["state 3", "state 39"]


@pytest.mark.parametrize("states", [[3], [-1], []])
def test_states_that_do_not_exist_are_refused(make_posterior, draws, states):
    with pytest.raises(UserError, match="state"):
        plot_posterior(make_posterior(draws["ordinary"]), states)


def test_the_interval_drawn_is_the_posteriors_own(make_posterior, draws):
    posterior = make_posterior(draws["ordinary"], level=0.5)
    axes = plot_posterior(posterior, [1])
    low, high = posterior.interval()
    bars = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 2.5]
    np.testing.assert_allclose(bars, [[low[1], high[1]]])


def test_given_axes_are_drawn_on(make_posterior, draws):
    axes = Figure().add_subplot()
    assert plot_posterior(make_posterior(draws["ordinary"]), ax=axes) is axes
    assert plot_curve([1, 2], [[0.0, 1.0]], "psrl", ax=axes) is axes
    assert plot_comparison(Comparison("t", draws["ordinary"][:, 0], {}), ax=axes) is axes


@pytest.mark.parametrize("name", ["$x^$", "<script>", "per cent % {braces}", ""])
def test_any_name_can_be_drawn(make_posterior, draws, name):
    style.to_bytes(plot_posterior(make_posterior(draws["ordinary"], method=name)).figure, "svg")
    style.to_bytes(plot_curve([1, 2], np.ones((2, 2)), name, reference={name: 1.5}).figure, "svg")


@pytest.mark.parametrize("reference", ["ordinary", "heavy", "equal", "single"])
def test_comparisons_of_every_kind_are_drawn(draws, reference):
    methods = {name: [draws["few"][:, 0], draws["single"][:, 0], draws["heavy"][:, 0]] for name in ("joint", "other")}
    panel = Comparison("after 10 steps", draws[reference][:, 0], methods, line=3.0, real=4.0)
    figure = comparison_figure([panel, panel])
    style.to_bytes(figure, "svg")
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim()


def test_curves_show_mean_band_and_standard_error():
    smoothed = np.random.default_rng(0).normal(size=(7, 5))
    step = np.array([1, 10, 100, 1000, 10_000])
    axes = plot_curve(step, smoothed, "bbi", reference={"optimum": 2.0})
    heights = [line.get_ydata() for line in axes.lines]
    error = smoothed.std(0, ddof=1) / np.sqrt(7)
    for expected in (smoothed.mean(0), smoothed.mean(0) - error, smoothed.mean(0) + error):
        assert any(len(line) == 5 and np.allclose(line, expected) for line in heights)
    corners = axes.collections[0].get_paths()[0].vertices[:, 1]
    low, high = np.quantile(smoothed, [0.05, 0.95], axis=0)
    assert np.isin(np.round([*low, *high], 9), np.round(corners, 9)).all()
    assert axes.get_xscale() == "log"
    assert axes.texts[0].get_text() == "optimum 2"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["bbi"]


def test_a_single_run_is_a_line_without_band():
    axes = plot_curve([1, 2, 3], [1.0, 2.0, 3.0], log=False)
    assert len(axes.lines) == 1
    assert not axes.collections
    assert axes.get_legend() is None


def test_colours_belong_to_names():
    assert style.colour_of("BBI") == style.COLOURS["bbi"]
    assert style.colour_of("mine") == style.colour_of("mine")
    agents = ("bbi", "bbi-optimistic", "psrl", "mmbi", "bss", "bql", "vdqn", "gptd", "q-learning", "oracle")
    methods = ("monte-carlo", "joint", "gaussian", "histogram", "mean-mdp")
    for group in (agents, methods):
        assert len({style.colour_of(name) for name in group}) == len(group)


def test_equal_pictures_are_equal_files(make_posterior, draws, tmp_path):
    contents = []
    for name in ("first", "second"):
        paths = style.save(plot_posterior(make_posterior(draws["ordinary"])).figure, tmp_path / f"{name}.v1")
        assert [path.name for path in paths] == [f"{name}.v1.{kind}" for kind in ("png", "svg", "pdf")]
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]
    assert not any(b"Date" in content for content in contents[0])
    assert len(list(tmp_path.iterdir())) == 6


def test_nothing_heavy_is_imported_with_the_package():
    code = (
        "import sys, bellief.plots.style, bellief.plots.value_pictures, bellief.plots.curves, bellief.plots.cards, "
        "bellief.report.build; assert not {'matplotlib', 'jinja2', 'scipy', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
