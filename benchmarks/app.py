"""How long a person waits for `bellief app`: measured by the page itself, in Chromium, from the event to the picture.

    python benchmarks/app.py --repeats 5 --json docs/results/app.json

- first picture: a CSV file of 3,000 rows is dropped; until the posterior of its start value is drawn.
- slider: the discount is moved while the same log is open; until the new posterior is drawn, all 1,000 draws of it.
- a million rows: the same as the first, with 1,000,000 rows of 50 states.

Each time the browser has drawn a frame after the change. The server is a process of its own, warm after one file.
"""

import argparse
import json
import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from app.chromium import Chromium  # noqa: E402
from app.conftest import Server  # noqa: E402
from report import browser as chromium  # noqa: E402

LIMITS = {"first picture": 1.5, "slider": 0.3, "a million rows": 5.0}

# Notes when a file is dropped or a slider moves, and when the answer has been drawn.
STOPWATCH = """
(() => {
  window.times = { began: null, done: null, draws: null };
  const begin = () => { window.times = { began: performance.now(), done: null, draws: null }; };
  document.addEventListener("drop", begin, true);
  document.querySelector("#discount").addEventListener("input", begin, true);
  // An answer about the log that was open before does not count.
  const ours = () => !window.awaited || document.querySelector("#log-name").textContent === window.awaited;
  new MutationObserver(() => ours() && requestAnimationFrame(() => setTimeout(() => {
    if (window.times.began !== null && window.times.done === null) {
      window.times.done = performance.now();
      window.times.draws = document.body.dataset.draws;
    }
  }))).observe(document.body, { attributeFilter: ["data-value"] });
})()
"""


def write_log(path, rows, states, actions=4, seed=0):
    """A random log."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, states, rows + 1)
    columns = state[:-1], rng.integers(0, actions, rows), rng.normal(size=rows).round(2), state[1:]
    with open(path, "w") as file:
        file.write("state,action,reward,next_state\n")
        file.writelines(f"{s},{a},{r},{n}\n" for s, a, r, n in zip(*columns, strict=True))
    return path


def elapsed(page):
    """Seconds between the event and the picture."""
    page.wait("window.times.done !== null", 60)
    times = page.ask("window.times")
    return (times["done"] - times["began"]) / 1000, int(times["draws"])


def drop(page, path):
    """Seconds until the first picture of a file."""
    page.ask("document.querySelector('#tab-log').click(); window.scrollTo(0, 0)")
    # Another name each time, so that an answer about the last file is not taken for one about this.
    path = path.rename(path.with_name(f"{secrets.token_hex(4)}.csv"))
    page.ask(
        f"window.awaited = '{path.name}'; delete document.body.dataset.collect; delete document.body.dataset.checked"
    )
    page.drop(path)
    seconds, _ = elapsed(page)
    page.wait("document.body.dataset.collect && document.querySelector('#busy').hidden", 120)
    page.ask("window.awaited = null")
    return seconds, path


def slide(page, place):
    """Seconds until the answer to a slider, and until the one with all draws."""
    page.set_value("#discount", place, ["input"])
    seconds, draws = elapsed(page)
    page.wait("document.body.dataset.draws === '1000'")
    time.sleep(0.2)
    return seconds, draws


def measure(repeats):
    """All times, in seconds."""
    found = {name: [] for name in LIMITS}
    draws = set()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "downloads").mkdir()
        small = write_log(folder / "small.csv", 3_000, 16)
        large = write_log(folder / "large.csv", 1_000_000, 50)
        server = Server(folder)
        page = Chromium(chromium.find(), folder / "profile", folder / "downloads")
        try:
            page.open(server.link, 1300)
            page.wait("document.body.dataset.ready")
            page.ask(STOPWATCH)
            _, small = drop(page, small)
            for _ in range(repeats):
                seconds, small = drop(page, small)
                found["first picture"].append(seconds)
                page.wait("document.body.dataset.checked", 120)
            page.ask("document.querySelector('#tab-value').click()")
            for number in range(4 * repeats):
                seconds, drawn = slide(page, 30 + number)
                found["slider"].append(seconds)
                draws.add(drawn)
            for _ in range(max(1, repeats // 2)):
                seconds, large = drop(page, large)
                found["a million rows"].append(seconds)
        finally:
            page.close()
            server.stop()
    return found, sorted(draws)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the times into this file")
    options = parser.parse_args()
    found, draws = measure(options.repeats)
    table = {
        name: {"median": statistics.median(times), "best": min(times), "worst": max(times), "limit": LIMITS[name]}
        for name, times in found.items()
    }
    for name, row in table.items():
        print(f"{name:16} median {row['median']:.3f} s, worst {row['worst']:.3f} s, at most {row['limit']} s asked for")
    print(f"draws of a slider's first answer: {', '.join(map(str, draws))}")
    if options.json:
        options.json.write_text(json.dumps(table | {"slider_draws": draws}, indent=2) + "\n")


if __name__ == "__main__":
    main()
