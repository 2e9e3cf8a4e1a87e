"""The page in a real browser: Chromium, headless. Needs `chromium`; set BELLIEF_NEED_BROWSER=1 to fail without it."""

import pytest

from bellief.report.interactive import render
from report import browser as chromium
from report.sample import HOSTILE, document

pytestmark = [pytest.mark.browser, pytest.mark.long]

PLOT = "document.querySelectorAll('.plot')[0]"
CURVE = "document.querySelector('button[data-curve=\"1\"]')"
LOG = "document.querySelector('button[data-switch=\"log\"]')"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(document()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = chromium.find_or_skip()
    made = chromium.Browser(program, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture
def page(browser, address):
    """The page as it is opened, on a desk; afterwards nothing may have gone wrong."""
    browser.open(address)
    browser.ask("localStorage.clear()")
    yield browser
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("data:image/png", "data:image/svg+xml"))] == [
        address
    ]


def test_it_opens_without_a_word_and_asks_for_nothing(page):
    assert page.ask("document.querySelectorAll('.verdicts tbody tr').length") == 5
    assert page.ask("document.querySelectorAll('.plot svg .mean').length") == 7
    assert page.ask("Array.from(document.images, (image) => image.naturalWidth)") == [40]
    # The policy holds: what a page could otherwise do is refused.
    assert page.ask("fetch('https://example.org').then(() => 'sent', () => 'refused')") == "refused"
    assert any("Content Security Policy" in one for one in page.complaints)
    page.complaints.clear()


def test_hostile_text_stays_text(page):
    assert page.ask("document.title") == f"Report {HOSTILE}"
    assert page.ask("document.querySelectorAll('img').length") == 1
    assert page.ask("document.querySelectorAll('script:not([type])').length") == 1
    page.ask("document.querySelectorAll('.plot')[2].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))")
    assert HOSTILE in page.ask("document.querySelectorAll('.readout')[2].textContent")
    assert page.ask("document.title") == f"Report {HOSTILE}"


def test_a_button_hides_a_curve_and_shows_it_again(page):
    shown = f"Array.from({PLOT}.querySelectorAll('g.curve'), (one) => one.dataset.curve)"
    assert page.ask(shown) == ["0", "1", "2"]
    page.ask(f"{CURVE}.click()")
    assert page.ask(f"{CURVE}.getAttribute('aria-pressed')") == "false"
    assert page.ask(shown) == ["0", "2"]
    assert page.ask("document.querySelectorAll('.plot')[1].querySelectorAll('g.curve').length") == 3
    page.ask(f"{CURVE}.click()")
    assert page.ask(shown) == ["0", "1", "2"]


def test_the_axis_of_time_is_logarithmic_or_not(page):
    ticks = f"Array.from({PLOT}.querySelectorAll('text[text-anchor=middle]'), (one) => one.textContent)"
    path = f"{PLOT}.querySelector('.mean').getAttribute('d')"
    before = page.ask(path)
    assert {"1", "10", "100", "1,000", "10k", "100k", "1M", "step (logarithmic)"} <= set(page.ask(ticks))
    page.ask(f"{LOG}.click()")
    assert page.ask(f"{LOG}.getAttribute('aria-pressed')") == "false"
    assert {"200k", "400k", "1M", "step"} <= set(page.ask(ticks))
    assert page.ask(path) != before
    page.ask(f"{LOG}.click()")
    assert page.ask(path) == before


def test_band_and_standard_error_can_be_left_out(page):
    for name, parts in (("band", 3), ("error", 6)):
        count = f"{PLOT}.querySelectorAll('.{name}').length"
        assert page.ask(count) == parts
        page.ask(f"document.querySelector('button[data-switch={name}]').click()")
        assert page.ask(count) == 0


def test_values_are_read_with_the_pointer(page):
    box = page.ask(f"(({PLOT}.scrollIntoView({{behavior: 'instant'}}), {PLOT}.getBoundingClientRect().toJSON()))")
    page.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2)
    text = page.ask(f"{PLOT}.querySelector('.readout').innerText")
    assert all(name in text for name in ("step", "bbi", "psrl", "bbi-optimistic", "±", " to "))
    page.move(5, 5)
    assert page.ask(f"{PLOT}.querySelector('.readout').hidden")


def test_values_are_read_with_the_keyboard_and_aloud(page):
    page.ask(f"{PLOT}.focus()")
    page.press("End")
    assert page.ask("document.querySelector('.spoken').textContent").startswith("step 1,000,000, bbi 3.6 ± ")
    page.press("Home")
    assert page.ask("document.querySelector('.spoken').textContent").startswith("step 1, bbi ")
    page.press("Escape")
    assert page.ask(f"{PLOT}.querySelector('.readout').hidden")


def test_verdicts_are_chosen_by_kind(page):
    rows = "Array.from(document.querySelectorAll('.verdicts tbody tr')).filter((row) => row.checkVisibility()).length"
    assert page.ask(rows) == 4  # what was not decided is folded
    page.ask("document.querySelector('details.undecided').open = true")
    assert page.ask(rows) == 5
    page.ask("document.querySelector('button.filter[data-verdict=reproduced]').click()")
    assert page.ask(rows) == 4
    assert page.ask("document.querySelector('.shown').textContent") == "4 of 5 claims shown"


def brightness(page, expression):
    red, green, blue = page.ask(f"({expression}).match(/[0-9]+/g).slice(0, 3).map(Number)")
    return (red + green + blue) / 3


def test_dark_and_light(page, address):
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.body).color"
    assert brightness(page, ground) > 240
    page.prefer("dark")
    assert brightness(page, ground) < 40 < 200 < brightness(page, ink)
    click = "document.querySelector('button.theme').click()"
    page.ask(click)  # light, whatever the system prefers
    assert brightness(page, ground) > 240
    page.prefer("light")
    page.ask(click)
    assert brightness(page, ground) < 40
    assert page.ask("document.querySelector('button.theme').innerText") == "Theme: dark"


@pytest.mark.parametrize("width", [390, 320, 768, 1280])
def test_nothing_is_wider_than_the_window(page, address, width):
    page.open(address, width, 800)
    assert page.ask("document.documentElement.scrollWidth") <= width
    texts = f"Array.from({PLOT}.querySelectorAll('svg text'), (one) => one.getBoundingClientRect().height)"
    assert min(page.ask(texts)) > 11


def test_everything_can_be_reached_and_named(page):
    unnamed = (
        "Array.from(document.querySelectorAll('a, button, [tabindex], summary, img, svg[role=img]'))"
        ".filter((one) => !(one.textContent.trim() || one.getAttribute('aria-label') || one.alt)).length"
    )
    assert page.ask(unnamed) == 0
    assert page.ask("['header', 'nav', 'main', 'footer'].every((name) => document.querySelector(name))")
    page.ask("document.querySelector('button.theme').focus({focusVisible: true})")
    assert page.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_without_scripts_the_charts_are_there(browser, address, tmp_path):
    browser.open(address, script=False)
    tree = browser.send("DOM.getDocument", depth=-1)["root"]["nodeId"]
    found = browser.send("DOM.querySelectorAll", nodeId=tree, selector=".plot img")["nodeIds"]
    assert len(found) == 3
    box = browser.send("DOM.getBoxModel", nodeId=found[0])["model"]
    assert box["width"] > 300
    assert browser.complaints == []
    browser.send("Emulation.setScriptExecutionDisabled", value=False)


def test_it_prints(page):
    content = page.send("Page.printToPDF", preferCSSPageSize=True)["data"]
    assert len(content) > 20_000
