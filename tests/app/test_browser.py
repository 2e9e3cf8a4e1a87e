"""The page in Chromium: from a dropped file to a downloaded report, and everything on the way."""

import functools
import http.server
import json
import shutil
import subprocess
import sys
import threading
import time

import pytest

import bellief
from app.conftest import Server
from bellief.logs.examples import EXAMPLES, example_path

pytestmark = [pytest.mark.browser, pytest.mark.long]

HOSTILE = "<script>document.title = 'owned'</script>"
MARKUP = "<b>bold</b>&<a href='http://evil.example'>x</a>"
HEAD = "state,action,reward,next_state\n"
PAGES = ("log", "value", "policies", "agents", "take")


def four(value):
    """A number as the page shows it, to four figures."""
    return f"{float(f'{value:.4g}'):g}"


def open_example(page, name):
    """Pick a log of the package, and wait for its first picture."""
    before = page.ask("document.body.dataset.value || '0'")
    page.click(f'[data-example="{name}"]')
    page.wait(f"(document.body.dataset.value || '0') !== '{before}' && document.body.dataset.log === 'read'")


def next_answer(page, before):
    """Wait for an answer after number `before`, with all its draws."""
    page.wait(f"Number(document.body.dataset.value) > {before} && document.body.dataset.draws === '1000'")


def answers(page):
    return int(page.ask("document.body.dataset.value || '0'"))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_from_a_dropped_file_to_a_report(page, tmp_path, name):
    """The whole way, for each log that ships, as a file of one's own."""
    path = tmp_path / EXAMPLES[name].file
    shutil.copy(example_path(name), path)
    page.drop(path)
    page.wait("document.body.dataset.log === 'read' && document.body.dataset.value")
    assert path.name in page.text("#log-found")
    # A file of one's own has no discount that suits it.
    expected = bellief.evaluate(f"example:{name}", "behaviour", 0.95)
    shown = page.text("#log-sentence").replace("−", "-")
    assert four(expected.start_summary()["mean"]) in shown
    assert page.ask("document.querySelectorAll('#log-chart svg path').length") > 3
    page.click("#go-value")
    page.wait("!document.querySelector('#page-value').hidden && document.body.dataset.collect")
    page.click("#states-table button")
    page.wait("document.body.dataset.state")
    page.click("#tab-take")
    command = page.text("#take-value-command")
    assert command.startswith(f"bellief evaluate {path.name} --policy behaviour")
    page.click('[data-file="value-report.html"]')
    report = page.downloaded("value-report.html").decode()
    assert "What the policy is worth" in report
    assert command in report
    page.click('[data-file="value-figure.svg"]')
    assert b"<svg" in page.downloaded("value-figure.svg")
    page.click('[data-file="value-numbers.csv"]')
    numbers = page.downloaded("value-numbers.csv").decode().splitlines()
    assert numbers[0] == "state,mean,sd,low,high"
    assert len(numbers) == 1 + len(expected.listed)


def test_the_report_that_was_downloaded_opens(page, tmp_path, server):
    open_example(page, "clinic")
    page.click("#tab-take")
    page.click('[data-file="value-report.html"]')
    path = tmp_path / "report.html"
    path.write_bytes(page.downloaded("value-report.html"))
    page.open(path.as_uri())
    assert "The policy is worth" in page.said()
    assert page.complaints == []
    page.open(server.link)


def test_the_command_that_is_shown_gives_the_number_that_is_shown(page):
    open_example(page, "clinic")
    page.click("#tab-value")
    before = answers(page)
    page.set_value("#policy", "always:pill")
    next_answer(page, before)
    page.set_value("#level", "80")
    page.wait("document.querySelector('#value-sentence').innerText.includes('80%')")
    words = page.ask("document.querySelector('#value-command').textContent").split()
    assert words[:3] == ["bellief", "evaluate", "example:clinic"]
    done = subprocess.run(
        [sys.executable, "-m", *words, "--json", "--quiet"], capture_output=True, text=True, check=True
    )
    start = json.loads(done.stdout)["start"]
    sentence = page.text("#value-sentence").replace("−", "-").replace(",", "")
    for end in ("mean", "low", "high"):
        assert four(start[end]) in sentence


@pytest.mark.parametrize(
    ("rows", "row"),
    [("0,0,1,1\n0,0,one,1\n1,0,2,0\n", 2), ("0,0,1,1\n" * 40 + "0,0,,1\n", 41), ("0,0,1\n", 1)],
)
def test_a_broken_file_is_answered_beside_the_row(page, tmp_path, rows, row):
    path = tmp_path / "broken.csv"
    path.write_text(HEAD + rows)
    page.drop(path)
    page.wait("document.body.dataset.log === 'failed'")
    done = subprocess.run(
        [sys.executable, "-m", "bellief", "evaluate", path.name], capture_output=True, text=True, cwd=tmp_path
    )
    assert page.text("#log-error-text") == done.stderr.strip()
    assert page.ask("document.querySelector('#log-rows tr.bad th').innerText") == str(row)
    assert page.ask("document.querySelector('#log-found').hidden")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("picture.parquet", b"\x89PNG\r\n" * 50),
        ("half.csv.gz", b"\x1f\x8b\x08\x00"),
        ("words.csv", b"hello\n"),
    ],
)
def test_files_that_are_no_logs_get_a_sentence(page, tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    page.drop(path)
    page.wait("document.body.dataset.log === 'failed'")
    done = subprocess.run(
        [sys.executable, "-m", "bellief", "evaluate", path.name], capture_output=True, text=True, cwd=tmp_path
    )
    assert page.text("#log-error-text") == done.stderr.strip()


def test_an_answer_that_comes_late_does_not_undo_later_choices(page, tmp_path):
    path = tmp_path / "named.csv"
    path.write_text("state,action,got,next_state\n" + "a,x,1,b\nb,y,0,a\n" * 20)
    page.set_file("#file", path)
    page.wait("document.body.dataset.log === 'failed'")
    page.ask(
        "(() => { const real = window.fetch; let count = 0; window.fetch = (...given) => count++ > 0 ? real(...given) "
        ": real(...given).then((told) => new Promise((done) => { window.release = () => done(told); })); })()"
    )
    page.set_value("#column-next_state", "", ["change"])
    page.wait("Boolean(window.release)")  # answered, and not yet told to the page
    page.set_value("#column-next_state", "next_state", ["change"])
    page.set_value("#column-reward", "got", ["change"])
    page.wait("document.body.dataset.log === 'read'")
    page.ask("window.release()")
    page.ask("new Promise((done) => setTimeout(done, 200))")
    assert page.ask("document.body.dataset.log") == "read"
    assert page.ask("document.querySelector('#column-reward').value") == "got"


def test_columns_are_assigned_by_hand(page, tmp_path):
    path = tmp_path / "named.csv"
    path.write_text("where,did,got,then\n" + "a,x,1,b\nb,y,0,a\n" * 20)
    page.set_file("#file", path)
    page.wait("document.body.dataset.log === 'failed'")
    assert "there is no column 'state'" in page.text("#log-error-text")
    for role, column in (("state", "where"), ("action", "did"), ("reward", "got"), ("next_state", "then")):
        page.ask(f"document.querySelector('#column-{role}').stale = true")
        page.set_value(f"#column-{role}", column, ["change"])
        # The answer brings new elements, with what was chosen in them.
        page.wait(f"(({{stale, value}}) => !stale && value === '{column}')(document.querySelector('#column-{role}'))")
    page.wait("document.body.dataset.log === 'read' && document.body.dataset.value")
    page.click("#tab-value")
    page.wait("document.querySelector('#value-command').textContent")
    command = page.ask("document.querySelector('#value-command').textContent")
    assert "--columns state=where,action=did,reward=got,next_state=then" in command


def test_labels_that_are_markup_stay_text(page, tmp_path):
    path = tmp_path / f"{'<img src=x onerror=alert(1)>'}.csv"
    rows = [f'"{HOSTILE}","{MARKUP}",1,"{MARKUP}"', f'"{MARKUP}","{HOSTILE}",0,"{HOSTILE}"'] * 30
    path.write_text(HEAD + "\n".join(rows))
    page.drop(path)
    page.wait("document.body.dataset.log === 'read' && document.body.dataset.value")
    page.click("#tab-value")
    page.wait("document.body.dataset.collect")
    page.click("#states-table button")
    page.wait("document.body.dataset.state")
    assert page.ask("[...document.querySelectorAll('#states-table button')].map((one) => one.textContent)") == sorted(
        [HOSTILE, MARKUP], key=lambda one: one != MARKUP
    )
    page.click("#tab-policies")
    page.click("#always-add")
    page.click("#compare-start")
    page.wait("document.body.dataset.compared === '3'")
    page.click("#improve-start")
    page.wait("document.body.dataset.improved")
    page.click("#edit-load")
    page.wait("!document.querySelector('#edit-part').hidden")
    page.click("#tab-take")
    assert page.ask("document.title") == "Bellief: what is a policy worth?"
    assert (
        page.ask("document.querySelectorAll('main script, main img, main b, main svg a, main a[href^=http]').length")
        == 0
    )
    page.click('[data-file="value-report.html"]')
    report = page.downloaded("value-report.html").decode()
    assert HOSTILE not in report.replace("&lt;", "<<")


def test_sliders_change_the_answer_while_they_move(page):
    open_example(page, "clinic")
    page.click("#tab-value")
    for slider, value in (("#discount", 20), ("#level", 60), ("#prior", 25)):
        sentence = json.dumps(page.text("#value-sentence"))
        page.set_value(slider, value, ["input"])  # still being dragged
        page.wait(f"document.querySelector('#value-sentence').innerText !== {sentence}")
        page.set_value(slider, value, ["change"])
    page.set_value("#range-low", 50)
    page.wait("document.querySelector('#value-command').textContent.includes('--reward-range -23')")
    before = answers(page)
    page.click("#limited")
    next_answer(page, before)
    page.set_value("#horizon", 0)
    page.wait("document.querySelector('#horizon-said').innerText === '1 step'")
    page.wait("document.querySelector('#value-command').textContent.includes('--horizon 1 ')")
    command = page.ask("document.querySelector('#value-command').textContent")
    assert "--level 0.6" in command
    assert "--prior logged:3.2" in command
    page.click("#value-reset")
    page.wait("!document.querySelector('#value-command').textContent.includes('--prior')")


def test_what_the_log_tells_is_said_in_plain_words(page, tmp_path):
    """Bounds and support; and where the log cannot tell, that sentence comes first."""
    open_example(page, "clinic")
    page.click("#tab-value")
    value = bellief.evaluate("example:clinic", "behaviour", 0.95)
    shown = page.text("#value-support").replace("−", "-")
    assert f"{100 * value.supported:.1f}%" in shown or "over 99.9%" in shown
    assert all(four(end) in shown for end in value.bounds)
    rows = "0,0,1,0\n" * 40 + "0,1,5,1\n1,0,0,0\n"
    path = tmp_path / "rare.csv"
    path.write_text(HEAD + rows)
    told = bellief.evaluate(str(path), "always:1", 0.95).cannot_tell
    assert told is not None
    page.click("#tab-log")
    page.drop(path)
    page.wait("document.querySelector('#log-name').textContent === 'rare.csv'")
    page.wait("document.querySelector('#log-sentence').innerText")
    page.click("#tab-value")
    page.set_value("#policy", "always:1", ["change"])
    page.wait(f"document.querySelector('#value-sentence').innerText === {json.dumps(told)}")


def test_a_drag_asks_no_more_than_it_can_use(page):
    """Sixty movements in a row: the newest wins, and those between are not all asked."""
    open_example(page, "frozen-lake")
    page.click("#tab-value")
    before = answers(page)
    page.ask(
        "(() => { const one = document.querySelector('#discount'); for (let place = 1; place <= 60; place++) {"
        "one.value = place; one.dispatchEvent(new Event('input')); } one.dispatchEvent(new Event('change')); })()"
    )
    page.wait("document.querySelector('#value-command').textContent.includes('--discount 0.988')")
    page.wait("document.querySelector('#busy').hidden")
    assert answers(page) - before <= 4


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(browser, tmp_path):
    small = Server(tmp_path, "--max-upload", "1")
    try:
        path = tmp_path / "large.csv"
        path.write_text(HEAD + "0,0,1,1\n" * 140_000)
        browser.open(small.link)
        browser.wait("document.body.dataset.ready")
        browser.drop(path)
        browser.wait("document.body.dataset.log === 'failed'")
        assert browser.text("#log-error-text").startswith("large.csv is larger than 1 MB")
        assert not any(url.endswith("/log") for url in browser.requests)
        assert browser.complaints == []
    finally:
        small.stop()


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    """A log that takes long to check: 60,000 rows, random."""
    import numpy as np

    path, rng = tmp_path_factory.mktemp("long") / "long.csv", np.random.default_rng(0)
    state, action = rng.integers(0, 40, 60_001), rng.integers(0, 3, 60_000)
    rows = zip(state[:-1], action, rng.normal(size=60_000).round(3), state[1:], strict=True)
    path.write_text(HEAD + "\n".join(",".join(map(str, row)) for row in rows))
    return path


def idle(server, seconds=1.0):
    """Whether the server does nothing for a while."""
    before = server.seconds()
    time.sleep(seconds)
    return server.seconds() - before < 0.08 * seconds


def wait_until_idle(server, seconds=90.0):
    until = time.monotonic() + seconds
    while not idle(server):
        assert time.monotonic() < until, "the server is still busy"


def wait_until_busy(server, seconds=30.0):
    """It uses the processor, however little of it a loaded machine grants."""
    before, until = server.seconds(), time.monotonic() + seconds
    while server.seconds() - before < 0.3:
        assert time.monotonic() < until, "the server does nothing"
        time.sleep(0.05)


def test_long_work_shows_progress_and_is_cancelled(page, server, long_log):
    page.drop(long_log)
    page.wait("document.body.dataset.log === 'read' && document.body.dataset.collect")
    page.wait("!document.querySelector('#check-offer').hidden")
    page.click("#check-start")
    page.wait("!document.querySelector('#busy').hidden && document.querySelector('#busy-bar').value > 0")
    first = page.ask("document.querySelector('#busy-bar').value")
    page.wait(f"document.querySelector('#busy-bar').value > {first}")
    page.click("#busy-cancel")
    page.wait("document.querySelector('#check-list').innerText.includes('stopped')")
    assert page.ask("document.querySelector('#busy').hidden")
    wait_until_idle(server)
    before = answers(page)  # and the page goes on to work
    page.set_value("#level", "70")
    next_answer(page, before)


def test_closing_the_page_stops_its_work(page, server, long_log):
    first = page.session
    session, target = page.tab()
    page.choose(session)
    page.open(server.link)
    page.wait("document.body.dataset.ready")
    page.drop(long_log)
    page.wait("document.body.dataset.log === 'read' && document.body.dataset.collect")
    page.click("#check-start")
    page.wait("!document.querySelector('#busy').hidden && document.querySelector('#busy-bar').value > 0")
    wait_until_busy(server)
    page.choose(first)
    page.close_tab(target)
    wait_until_idle(server)


def test_two_tabs_do_not_disturb_one_another(page, server):
    first = page.session
    open_example(page, "clinic")
    sentence = page.text("#log-sentence")
    session, target = page.tab()
    page.choose(session)
    page.open(server.link)
    page.wait("document.body.dataset.ready")
    assert page.ask("document.querySelector('#log-found').hidden")
    open_example(page, "frozen-lake")
    other = page.text("#log-sentence")
    page.choose(first)
    page.click("#tab-value")
    before = answers(page)
    page.set_value("#policy", "uniform")
    next_answer(page, before)
    page.choose(session)
    assert page.text("#log-sentence") == other != sentence
    page.click("#states-table button") if page.ask("!document.querySelector('#page-value').hidden") else None
    page.close_tab(target)
    page.choose(first)
    page.click("#tab-take")
    assert "example:clinic" in page.text("#take-value-command")


def test_a_tab_that_is_loaded_again_has_its_log_and_a_copy_has_none(page, server):
    open_example(page, "clinic")
    remembered = page.ask("sessionStorage.getItem('bellief-workspace')")
    page.open(server.origin + "/")
    page.wait("document.body.dataset.log === 'read'")
    assert page.text("#log-name") == "example:clinic"
    first = page.session
    session, target = page.tab()
    page.choose(session)
    page.open(server.origin + "/")
    page.ask(f"sessionStorage.setItem('bellief-workspace', '{remembered}')")
    page.open(server.origin + "/")
    page.wait("document.body.dataset.ready")
    assert page.ask("sessionStorage.getItem('bellief-workspace')") != remembered
    page.choose(first)
    page.close_tab(target)


def test_with_the_keyboard_only(page):
    """From the top of the page to the report, without a mouse."""
    page.tab_to('[data-example="clinic"]')
    page.key("Enter")
    page.wait("document.body.dataset.value && document.body.dataset.log === 'read'")
    page.tab_to("#go-value")
    page.key("Enter")
    page.wait("document.activeElement.id === 'tab-value'")
    page.tab_to("#discount")
    before, sentence = answers(page), page.text("#value-sentence")
    page.key("ArrowRight")
    next_answer(page, before)
    assert page.text("#value-sentence") != sentence
    page.tab_to("#states-table button", 120)
    before = answers(page)
    page.set_value("#level", "80")
    next_answer(page, before)  # the table is filled again, and the keyboard stays where it was
    page.wait("document.querySelector('#states-table').innerText.includes('80%')")
    assert page.ask("document.activeElement.matches('#states-table button')")
    page.key("Enter")
    page.wait("document.activeElement.id === 'state-title'")
    page.ask("document.querySelector('#tab-value').focus()")
    page.key("ArrowRight")
    assert page.ask("document.activeElement.id") == "tab-policies"
    page.tab_to("#compare-start")
    page.key(" ")
    page.wait("document.body.dataset.compared === '2'")
    page.ask("document.querySelector('#tab-policies').focus()")
    page.key("End")
    assert page.ask("document.activeElement.id") == "tab-take"
    page.tab_to('[data-file="value-report.html"]')
    assert page.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.key("Enter")
    assert b"What the policy is worth" in page.downloaded("value-report.html")


def test_new_numbers_leave_the_focus_where_it_is(page):
    open_example(page, "clinic")
    page.click("#tab-value")
    page.wait("document.querySelectorAll('#states-table button').length > 1")
    page.ask("document.querySelectorAll('#states-table button')[1].focus()")
    name, old = page.ask("document.activeElement.innerText"), "window.rowBefore"
    page.ask(f"{old} = document.querySelector('#states-table tbody tr'), true")
    page.set_value("#discount", 20)
    page.wait(f"document.querySelector('#states-table tbody tr') !== {old}")
    assert page.ask("document.activeElement.matches('#states-table button')")
    assert page.ask("document.activeElement.innerText") == name


def test_policies_are_compared_improved_edited_and_uploaded(page, tmp_path):
    open_example(page, "clinic")
    page.click("#tab-policies")
    page.set_value("#always", "always:pill")
    page.click("#always-add")
    page.click("#compare-start")
    page.wait("document.body.dataset.compared === '3'")
    found = bellief.compare("example:clinic", ["behaviour", "uniform", "always:pill"], 0.95)
    assert f"“{found.best}” looks best" in page.text("#compare-sentence")
    assert page.text("#compare-more") == found.notes[0]
    page.click("#improve-start")
    page.wait("document.body.dataset.improved")
    better = bellief.improve("example:clinic", 0.95)
    rows = page.ask(
        "[...document.querySelectorAll('#improve-table tbody tr')]"
        ".map((row) => [...row.cells].slice(0, 2).map((cell) => cell.innerText))"
    )
    frame = better.to_pandas()
    assert rows == [[state, frame.loc[state, "action"]] for state in ("mild", "moderate", "severe")]
    page.click("#edit-load")
    page.wait("!document.querySelector('#edit-part').hidden")
    for place, share in enumerate((0, 100, 0)):
        page.set_value(f"#edit-table tbody tr:nth-child(1) td:nth-of-type({place + 1}) input", share, ["input"])
    page.click("#edit-save")
    page.wait("document.querySelector('#edit-said').innerText.startsWith('Saved as “mine”')")
    page.set_value("#edit-table tbody tr:nth-child(1) td:nth-of-type(1) input", 70, ["input"])
    page.click("#edit-save")
    page.wait("document.querySelector('#edit-said').innerText.includes('sum to 1.7')")
    path = tmp_path / "from file.csv"
    path.write_text("state,action,probability\nmild,pill,1\nmoderate,infusion,1\nsevere,infusion,1\n")
    page.set_file("#policy-file", path)
    page.wait("document.querySelector('#policy-list').innerText.includes('from file')")
    page.click("#compare-start")
    page.wait("document.body.dataset.compared === '6'")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("state,action,probability\nmild,nothing,1\n")
    page.set_file("#policy-file", wrong)
    page.wait("document.querySelector('#compare-problem').innerText.startsWith('wrong.csv: row 1')")
    page.click("#tab-value")
    before = answers(page)
    page.set_value("#policy", "saved:improved")
    next_answer(page, before)
    assert "--policy improved.csv" in page.ask("document.querySelector('#value-command').textContent")
    page.click("#tab-take")
    page.ask("[...document.querySelectorAll('#take-list a')].find((one) => one.textContent === 'improved.csv').click()")
    assert b"\nmild,pill," in page.downloaded("improved.csv")


def wait_until_still(page, expression, still=2.0, seconds=120.0):
    """Wait until a value has not changed for a while, and return it: what was under way may still arrive."""
    until = time.monotonic() + seconds
    value, since = page.ask(expression), time.monotonic()
    while time.monotonic() - since < still:
        assert time.monotonic() < until, f"{expression} still changes"
        time.sleep(0.05)
        if (now := page.ask(expression)) != value:
            value, since = now, time.monotonic()
    return value


def test_agents_are_watched_paused_and_stopped(page):
    page.click("#tab-agents")
    page.set_value("#steps", "300000")
    page.set_value("#runs", "2")
    page.set_value("#pace", "slow")
    page.click("#agents-start")
    page.wait("Number(document.body.dataset.posterior) >= 3 && Number(document.body.dataset.steps) > 1")
    page.wait("document.querySelectorAll('#curves-chart .scatterlayer .trace').length >= 2")
    page.click("#agents-pause")
    page.wait("document.querySelector('#agents-said').innerText === 'Paused.'")
    steps = wait_until_still(page, "document.body.dataset.steps")
    page.click("#agents-pause")
    page.wait(f"document.body.dataset.steps !== '{steps}'")
    page.set_value("#pace", "fast")
    page.wait("Number(document.body.dataset.posterior) >= 5")
    page.click("#agents-stop")
    page.wait("document.body.dataset.agents === 'done'")
    page.click("#agents-download")
    table = page.downloaded("curves.csv").decode().splitlines()
    # Runs by themselves of an agent that is done; of one that was stopped, what was seen.
    assert {"agent", "step", "smoothed"} <= set(table[0].split(","))
    assert {line.split(",")[0] for line in table[1:]} >= {"psrl-paper"}
    assert "bellief compare-agents" in page.ask("document.querySelector('#agents-command').textContent")
    page.wait("document.querySelector('#posterior-chart').getAttribute('aria-label').includes('joint belief from')")


def test_agents_stop_with_their_page(page, server):
    first = page.session
    session, target = page.tab()
    page.choose(session)
    page.open(server.link)
    page.wait("document.body.dataset.ready")
    page.click("#tab-agents")
    page.set_value("#steps", "1000000")
    page.click("#agents-start")
    page.wait("Number(document.body.dataset.steps) > 1")
    wait_until_busy(server)
    page.choose(first)
    page.close_tab(target)
    wait_until_idle(server)


@pytest.mark.parametrize("dark", [False, True])
def test_everybody_can_use_it(page, server, axe, dark):
    """The rules of axe on every page, with everything on it that can be shown."""
    page.prefer("dark" if dark else "light")
    open_example(page, "clinic")
    page.wait("document.body.dataset.checked && document.body.dataset.collect")
    page.click("#tab-value")
    page.click("#states-table button")
    page.wait("document.body.dataset.state")
    page.click("#tab-policies")
    page.click("#compare-start")
    page.wait("document.body.dataset.compared")
    page.click("#improve-start")
    page.wait("document.body.dataset.improved")
    page.click("#edit-load")
    page.wait("!document.querySelector('#edit-part').hidden")
    page.ask("for (const one of document.querySelectorAll('details')) one.open = true")
    page.ask(axe + "; undefined")
    for name in PAGES:
        page.click(f"#tab-{name}")
        found = page.ask(
            "axe.run(document, {resultTypes: ['violations']}).then((told) => told.violations.map((one) => [one.id, "
            "one.nodes.map((node) => node.html.slice(0, 200) + ' ' + (node.any[0] || {}).message)]))"
        )
        assert found == [], name
    page.complaints.clear()  # axe tries a style of its own, which the policy refuses


def brightness(page, expression):
    red, green, blue = page.ask(f"({expression}).match(/[0-9]+/g).slice(0, 3).map(Number)")
    return (red + green + blue) / 3


def test_dark_and_light(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    page.prefer("light")
    assert brightness(page, ground) > 240
    page.prefer("dark")
    assert brightness(page, ground) < 40
    page.click("#theme")
    assert page.text("#theme") == "Theme: light"
    assert brightness(page, ground) > 240
    page.prefer("light")


@pytest.mark.parametrize("width", [320, 400, 800])
def test_nothing_is_wider_than_a_phone(page, server, width):
    page.resize(width, 800)
    open_example(page, "clinic")
    page.wait("document.body.dataset.collect")
    for name in PAGES:
        page.click(f"#tab-{name}")
        page.ask("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.ask("document.documentElement.scrollWidth") <= width, name
    page.resize(1300)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *told):
        pass


def test_another_site_in_the_same_browser_gets_nothing(page, server, tmp_path):
    """A page of another origin: its form, script and requests are refused, with the cookie in the browser."""
    evil = tmp_path / "evil.html"
    evil.write_text(
        f"<form id=form method=post enctype=text/plain action='{server.origin}/api/workspaces'>"
        "<input name='{\"a\":\"' value='\"}'></form>"
        f"<iframe src='{server.origin}/' name=frame></iframe>"
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            page.open(f"http://localhost:{other.server_port}/evil.html")
            everything = "{credentials: 'include'}"
            blind = "{method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}'}"
            read = f"fetch('{server.origin}/', {everything}).then(() => 'read', () => 'refused')"
            write = f"fetch('{server.origin}/api/workspaces', {blind}).then((one) => one.type, () => 'refused')"
            script = (
                "new Promise((done) => { const one = document.createElement('script'); "
                "one.onload = () => done('read'); one.onerror = () => done('refused'); "
                f"one.src = '{server.origin}/static/theme.js'; "
                "document.head.append(one); })"
            )
            assert page.ask(read) == "refused"
            assert page.ask(write) in ("opaque", "refused")  # opaque: the page cannot see the refusal
            assert page.ask(script) == "refused"
            page.ask("document.querySelector('#form').submit()")
            page.wait("document.body.innerText.includes('Refused: the request comes from another site.')")
        finally:
            other.shutdown()
    page.complaints.clear()
    page.requests.clear()
    page.open(server.link)
    page.wait("document.body.dataset.ready")
