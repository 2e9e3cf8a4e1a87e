"""One source for every number: README, documentation and command line are what the package's summary says."""

from pathlib import Path

import numpy as np
import pytest
from markupsafe import Markup

from bellief.errors import UserError
from bellief.paper import documentation_pages, sentences, summary
from bellief.paper.item_files import charts_csv, to_csv
from bellief.paper.items import DISTANCES, ITEMS
from bellief.paper.paper_report import build_document
from bellief.paper.quotes import QUOTES
from bellief.paper.tasks import Size
from bellief.report import static_chart
from bellief.report.document import NOT_REPRODUCED, TOO_SMALL
from bellief.report.interactive import render

ROOT = Path(__file__).parents[2]
PUBLISHED = summary.published()
AGAIN = "Regenerate: bellief paper --docs docs/paper --readme README.md"


def test_readme_is_made_from_the_summary():
    text = (ROOT / "README.md").read_text()
    assert documentation_pages.filled_readme(PUBLISHED, text) == text, AGAIN


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("index.md", documentation_pages.index_page),
        ("sentences.md", lambda found: sentences.sentences_page(summary.judgements_of(found))),
    ],
)
def test_pages_are_made_from_the_summary(name, make):
    assert (ROOT / "docs" / "paper" / name).read_text() == make(PUBLISHED), AGAIN


def test_csv_files_are_made_from_the_summary():
    for item in ITEMS.values():
        if charts := PUBLISHED.charts.get(item.label):
            assert (ROOT / "docs" / "paper" / f"{item.stem}.csv").read_text() == charts_csv(charts), AGAIN


def test_tables_are_made_from_the_summary():
    compared = 0
    for item in ITEMS.values():
        if tables := PUBLISHED.tables.get(item.label):
            name = item.stem if item.kind == DISTANCES else f"{item.stem}-table"
            written = (ROOT / "docs" / "paper" / f"{name}.csv").read_text()
            assert written == "\n".join(to_csv(table) for table in tables), AGAIN
            compared += 1
    assert compared > 5


def test_the_page_says_which_runs_were_not_kept():
    assert "were not kept" in PUBLISHED.provenance
    assert PUBLISHED.provenance in documentation_pages.index_page(PUBLISHED)


def test_a_summary_survives_its_file():
    content = summary.to_bytes(PUBLISHED)
    again = summary.from_bytes(content)
    assert summary.to_bytes(again) == content
    assert len(content) < 2_000_000
    assert again.measured == PUBLISHED.measured
    np.testing.assert_array_equal(
        again.samples["back-heavy/10/induction"], PUBLISHED.samples["back-heavy/10/induction"]
    )


@pytest.mark.parametrize("content", [b"", b"nothing", summary.to_bytes(PUBLISHED)[:-100]])
def test_a_damaged_summary_is_refused(content):
    with pytest.raises(UserError, match="no summary"):
        summary.from_bytes(content)


def test_at_least_half_of_the_claims_are_decided():
    verdicts = [one.verdict for one in summary.judgements_of(PUBLISHED)]
    assert sum(verdict != TOO_SMALL for verdict in verdicts) >= len(verdicts) / 2


def test_what_a_summary_lacks_comes_from_another():
    key = next(iter(PUBLISHED.measured))
    label = "fig:full_chain"
    part = PUBLISHED._replace(measured={key: PUBLISHED.measured[key]}, charts={label: []}, missing={})
    merged = summary.merge(part, PUBLISHED)
    assert merged.measured == PUBLISHED.measured
    assert merged.charts[label] == PUBLISHED.charts[label]


def test_every_sentence_has_a_verdict_or_a_reason():
    judgements = summary.judgements_of(PUBLISHED)
    for sentence in sentences.SENTENCES:
        assert sentence.reason or sentences.verdicts_of(sentence, judgements), sentence.text
    assert {name for sentence in sentences.SENTENCES for name in sentence.quotes} == set(QUOTES)


def test_every_failure_was_read_a_second_time():
    failed = {one.claim.quote for one in summary.judgements_of(PUBLISHED) if one.verdict == NOT_REPRODUCED}
    assert failed
    assert all(sentences.SECOND_READINGS.get(name) for name in failed)


@pytest.mark.slow
def test_every_chart_can_be_drawn():
    page = render(build_document(PUBLISHED, list(ITEMS.values())))
    assert page.count("data:image/svg+xml") >= 40


def test_the_report_has_pictures_first_and_undecided_claims_folded(monkeypatch):
    # One picture of each kind is drawn; a test of its own draws all.
    drawn, draw = set(), static_chart.draw

    def once(chart, looks, alt):
        kind = (chart.log_x, bool(chart.lines), any(curve.low is not None for curve in chart.curves))
        if kind in drawn:
            return Markup("<img>")
        drawn.add(kind)
        return draw(chart, looks, alt)

    monkeypatch.setattr(static_chart, "draw", once)
    page = render(build_document(PUBLISHED, list(ITEMS.values())))
    assert page.count("data:image/svg+xml") >= len(drawn) > 1
    assert page.index("<figure") < page.index('id="verdicts"')
    folded = page.index('<details class="undecided">')
    assert page.index('id="verdicts"') < folded
    assert page.count(f'data-verdict="{TOO_SMALL}"') > 1
    assert f'<tr role="row" data-verdict="{TOO_SMALL}"' not in page[:folded]


def test_other_sizes_than_the_scales_are_told():
    assert summary.smaller_than_scale(PUBLISHED) == []
    sizes = {**PUBLISHED.sizes, "lavalake": {**PUBLISHED.sizes["lavalake"], "PSRL": Size(20, 1_000)}}
    told = summary.smaller_than_scale(PUBLISHED._replace(sizes=sizes))
    assert told == ["LavaLake 5x7 (PSRL) 20 x 1,000 instead of 100 x 1,000,000"]
