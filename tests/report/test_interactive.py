"""The page without a browser: escaped, self-contained, repeatable, and whole without JavaScript."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from bellief.report.document import Chart, Curve, Document, Section, Table
from bellief.report.interactive import render
from report.sample import HOSTILE, document, png

VOID = {"meta", "img", "br"}
SHAPES = {"line", "path", "circle"}


class Reader(HTMLParser):
    """Elements with their attributes, and the text of some of them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.texts = [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in SHAPES
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page():
    return render(document())


@pytest.fixture(scope="module")
def read(page):
    return Reader(page)


def test_the_same_document_gives_the_same_bytes(page):
    assert render(document()) == page
    assert render(document("other")) != page


def test_every_element_is_closed_and_every_id_is_there_once(read):
    assert read.open == []
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes in read.all("a"):
        assert attributes["href"].removeprefix("#") in ids
    for _, attributes in read.elements:
        assert attributes.get("aria-labelledby", ids[0]) in ids


def test_nothing_is_asked_of_the_network(read):
    for tag, attributes in read.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        for name in ("href", "src", "action", "data", "srcset"):
            assert attributes.get(name, "#").startswith(
                ("#", "data:image/png;base64,", "data:image/svg+xml;base64,")
            ), tag
    assert "url(" not in "".join(read.texts["style"])
    assert "@import" not in "".join(read.texts["style"])


def test_hostile_text_stays_text(read):
    assert [attributes.get("type") for attributes in read.all("script")].count(None) == 1
    (picture,) = (one for one in read.all("img") if one["src"].startswith("data:image/png"))
    assert picture["alt"] == HOSTILE
    for _, attributes in read.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    assert HOSTILE in read.texts["td"]
    assert HOSTILE in read.texts["code"]
    assert f"Report {HOSTILE}" in read.texts["title"]
    data = [json.loads(text) for text in read.texts["script"] if text.startswith("{")]
    assert data[-1]["curves"][0]["label"] == HOSTILE


def test_only_our_own_script_and_style_may_run(read, page):
    policy = next(one["content"] for one in read.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        text = page.rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        named = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{named}'" in policy


def test_verdicts_have_signs_links_and_counts(page):
    assert '<span aria-hidden="true">✓ </span>reproduced</span>' in page
    assert '<span aria-hidden="true">✗ </span>not reproduced</span>' in page
    assert page.count('<a href="#fig:chain">fig:chain</a>') == 2
    assert "not reproduced (1)</button>" in page
    # The claims of a section are told there again.
    assert page.count("BSS is slightly worse.") == 2


def pictures_of(page):
    """The charts of a page as their SVG text, by the name of their place."""
    found = re.findall(
        r'<div class="plot" id="([^"]*)"><img alt="[^"]+" src="data:image/svg\+xml;base64,([^"]*)">', page
    )
    return {name: base64.b64decode(content).decode() for name, content in found}


def test_charts_are_there_without_a_script(page):
    pictures = pictures_of(page)
    assert len(pictures) == 3
    chart = pictures["fig:chain-1"]
    assert chart.count('<g id="mean-') == 3
    assert chart.count('<g id="band-') == 3
    assert chart.count('<g id="error-') == 6
    assert "optimum 3.677" in chart
    assert "(logarithmic)" in chart
    assert "nan" not in chart


def test_numbers_that_are_not_finite_leave_a_gap(read):
    data = [json.loads(text) for text in read.texts["script"] if text.startswith("{")][-1]
    assert data["curves"][0]["mean"] == [0, None, 2, None]
    assert data["grids"] == [[0, 1, 2, 3]]


def test_the_values_stand_in_a_table(page):
    behind = page[page.index("The values as a table") :]
    assert behind.index("± ") < behind.index("</details>")
    assert '<th scope="col" class="number">psrl</th>' in behind[: behind.index("</details>")]


def test_numbers_stand_to_the_right(page):
    assert '<tr><td>bbi</td><td class="number">3.64</td><td>stuck</td></tr>' in page
    assert '<tr><td>psrl</td><td class="number">−3.68</td><td></td></tr>' in page


def test_pictures_travel_inside(page):
    assert "data:image/png;base64," + base64.b64encode(png()).decode() in page


@pytest.mark.parametrize(
    "chart",
    [
        Chart("empty", "x", "y", []),
        Chart("nothing finite", "x", "y", [Curve("a", [1, 2], [float("nan")] * 2)], True),
        Chart("one point", "x", "y", [Curve("a", [5], [2.0], [1.0], [3.0], [0.1])], True),
        Chart("level", "x", "y", [Curve("a", [1, 2], [3.0, 3.0])]),
        Chart("not positive", "x", "y", [Curve("a", [-1, 0], [3.0, 4.0])], True),
        Chart("huge", "x", "y", [Curve("a", [1e-9, 1e12], [-1e30, 1e30])], True),
    ],
    ids=lambda chart: chart.title,
)
def test_odd_charts_are_drawn(chart):
    page = render(Document("t", [], [], [Section("a", "b", [], [chart, Table("c", ["d"], [])])]))
    Reader(page)
    (picture,) = pictures_of(page).values()
    ElementTree.fromstring(picture)
    assert "nan" not in picture


def test_hostile_words_in_a_picture():
    chart = Chart("t", "$x_{", "<b>\x00\ud800&", [Curve("a", [1, 2], [1.0, 2.0])], lines=[("</svg>$\\frac", 1.5)])
    page = render(Document("t", [], [], [Section("a", "b", [], [chart])]))
    (picture,) = pictures_of(page).values()
    ElementTree.fromstring(picture)
    assert "$x_{" in picture  # as it is, not as a formula


def test_a_point_between_gaps_is_seen():
    chart = Chart("t", "x", "y", [Curve("a", [1, 2, 3, 4], [1.0, float("nan"), 2.0, float("nan")])])
    page = render(Document("t", [], [], [Section("a", "b", [], [chart])]))
    (picture,) = pictures_of(page).values()
    assert picture.count("<use ") >= 2


def test_what_utf8_cannot_hold_is_no_trouble():
    page = render(Document("a\ud800\x00b", [], [], []))
    assert "<title>a?\ufffdb</title>" in page


def test_anchors_that_are_taken_or_cannot_stand_in_an_address():
    sections = [Section(name, name, [], []) for name in ("main", "a b", "a-b", "")]
    page = render(Document("t", [], [], sections))
    assert re.findall(r'<section id="([^"]*)"', page) == ["main-2", "a-b", "a-b-2", "section"]


def test_agents_keep_their_colours_and_no_two_curves_look_alike():
    names = ["own", "psrl", *(f"agent {number}" for number in range(20))]
    charts = [
        Chart("a", "x", "y", [Curve(name, [1], [1]) for name in names]),
        Chart("b", "x", "y", [Curve("psrl", [1], [1])]),
    ]
    page = render(Document("t", [], [], [Section("s", "s", [], charts)]))
    data = [json.loads(text) for text in Reader(page).texts["script"] if text.startswith("{")]
    looks = [(one["colour"], one["dash"]) for one in data[0]["curves"]]
    assert len(set(looks)) == len(names)
    assert looks[1] == (2, 0) == (data[1]["curves"][0]["colour"], data[1]["curves"][0]["dash"])
