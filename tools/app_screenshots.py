"""Pictures of `bellief app` for the documentation, from the running program: `python tools/app_screenshots.py`."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from app.chromium import Chromium  # noqa: E402
from app.conftest import Server  # noqa: E402
from report import browser as chromium  # noqa: E402

DESK, PHONE = 1300, 400


class Camera:
    """Takes pictures of what the window shows, or of the whole page."""

    def __init__(self, page, out):
        self.page, self.out = page, out

    def take(self, name, whole=False, top=None):
        """Save a picture once the page is at rest."""
        if top is not None:
            self.page.ask(f"document.querySelector('{top}').scrollIntoView({{behavior: 'instant', block: 'start'}})")
        else:
            self.page.ask("document.activeElement.blur(); window.scrollTo(0, 0)")
        time.sleep(0.6)
        self.page.picture(self.out / f"{name}.png", whole)
        print(self.out / f"{name}.png")


def open_log(page, name):
    page.ask("delete document.body.dataset.collect; delete document.body.dataset.checked")
    page.ask("document.querySelector('#tab-log').click()")
    page.click(f'[data-example="{name}"]')
    page.wait("document.body.dataset.collect && document.body.dataset.checked", 60)


def walk(page, camera, prefix):
    """The pages, one after the other."""
    open_log(page, "clinic")
    camera.take(f"{prefix}-log", top="#log-name")
    page.click("#tab-value")
    camera.take(f"{prefix}-value")
    page.click("#states-table tr:nth-child(2) button")
    page.wait("document.body.dataset.state")
    camera.take(f"{prefix}-states", top="#states-chart")
    page.click("#tab-policies")
    page.click("#improve-start")
    page.wait("document.body.dataset.improved")
    page.click("#compare-start")
    page.wait("document.body.dataset.compared === '3'")
    camera.take(f"{prefix}-policies")


def agents(page, camera, prefix, seconds):
    """Agents on NChain, some way into their run."""
    page.click("#tab-agents")
    page.set_value("#steps", "3000")
    page.click("#agents-start")
    page.wait("Number(document.body.dataset.posterior) > 2", 180)
    page.wait("document.body.dataset.agents === 'done'", seconds)
    camera.take(f"{prefix}-agents")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "downloads").mkdir()
        server = Server(folder)
        page = Chromium(chromium.find(), folder / "profile", folder / "downloads")
        try:
            camera = Camera(page, options.out)
            page.open(server.link, DESK, 1000)
            page.wait("document.body.dataset.ready")
            walk(page, camera, "app")
            agents(page, camera, "app", 400)
            page.click("#tab-take")
            camera.take("app-take")
            page.prefer("dark")
            page.click("#tab-value")
            camera.take("app-dark")
            page.prefer("light")
            page.resize(PHONE, 860)
            page.click("#tab-value")
            camera.take("app-phone", top="#value-sentence")
            assert page.complaints == [], page.complaints
        finally:
            page.close()
            server.stop()


if __name__ == "__main__":
    main()
