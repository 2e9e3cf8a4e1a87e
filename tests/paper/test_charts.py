"""Charts and tables of items, from results that are known."""

from pathlib import Path

import pytest

from bellief.paper.charts import charts_of, tables_of
from bellief.paper.computed_results import Folder
from bellief.paper.figures import figures_of
from bellief.paper.item_files import to_csv, to_latex, to_markdown
from bellief.paper.items import ITEMS
from bellief.report.document import Table
from paper.test_claims import make_episodes, make_results, make_runs


def test_continuous_items_show_steps_survived():
    agents = {"BBI": make_episodes(50), "BBI (ours)": make_episodes(100)}
    results = make_results(agents, optimum=None)
    (chart,) = charts_of(ITEMS["fig:inverted_pendulum"], results)
    assert "survived" in chart.y_label
    assert [curve.ours for curve in chart.curves] == [False, True]
    assert chart.curves[0].mean[-1] == 50
    (table,) = tables_of(ITEMS["fig:inverted_pendulum"], results)
    assert [row[0] for row in table.rows] == ["BBI", "BBI (ours)"]
    assert table.rows[1][3].startswith("100 ")


def test_panels_have_every_agent_of_the_paper_and_ours():
    agents = {name: make_runs(1.0, 0.1) for name in ("BBI", "PSRL", "BSS", "BBI (ours)", "Q-learning", "optimal")}
    charts = charts_of(ITEMS["fig:ci_chain"], make_results(agents))
    assert [chart.title for chart in charts] == ["BBI", "PSRL", "BSS", "BBI (ours)"]
    assert all(chart.lines == (("optimum", 1.0),) for chart in charts)
    (figure,) = figures_of(ITEMS["fig:ci_chain"], charts, {}).values()
    assert len(figure.axes) == 4


def test_what_was_not_computed_has_no_chart():
    assert charts_of(ITEMS["fig:full_chain"], make_results()) == []
    assert tables_of(ITEMS["fig:full_chain"], make_results()) == []


def test_optimum_of_countable_tasks_only():
    folder = Folder(Path("nowhere"))
    assert folder.results().optimum("pendulum") is None
    assert folder.results().optimum("nchain") == pytest.approx(3.6768, abs=1e-4)


def test_tables_escape_what_their_format_means():
    table = Table("50% & more", ["a|b", "c_d"], [["1 ± 2", "x|y"]])
    assert "x\\|y" in to_markdown(table)
    assert r"50\% \& more" in to_latex(table)
    assert r"1 $\pm$ 2" in to_latex(table)
    assert to_csv(table).splitlines()[1] == "50% & more,1 ± 2,x|y"
