"""The browser of the tests, with what a page for people needs: waiting, keys, files, tabs, downloads."""

import json
import time
from pathlib import Path

from report.browser import Browser

KEYS = {
    "Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "ArrowLeft": (37, ""), "ArrowRight": (39, ""),
    "ArrowUp": (38, ""), "ArrowDown": (40, ""), "Home": (36, ""), "End": (35, ""), "Escape": (27, ""),
}  # fmt: skip
SHIFT = 8


class Chromium(Browser):
    """One browser; `tab` opens more pages in it, and the methods speak to the one that was chosen last."""

    def __init__(self, program, profile, downloads):
        self.downloads = Path(downloads)
        super().__init__(program, profile)
        # Without a session the whole browser is meant.
        first, self.session = self.session, None
        self.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads), eventsEnabled=True)
        self.session = first

    def tab(self, context=None):
        """Open another page, in a browser context of its own if asked for; returns what `choose` takes."""
        before, self.session = self.session, None
        options = {} if context is None else {"browserContextId": context}
        target = self.send("Target.createTarget", url="about:blank", **options)["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        made, self.session = self.session, before
        return made, target

    def choose(self, session):
        """Speak to another page from now on."""
        self.session = session

    def close_tab(self, target):
        """Close a page as a person does."""
        before, self.session = self.session, None
        self.send("Target.closeTarget", targetId=target)
        self.session = before

    def wait(self, expression, seconds=120.0, every=0.03):
        """Wait until a JavaScript expression is true, and return its value."""
        until = time.monotonic() + seconds
        while True:
            try:
                found = self.ask(f"document.body && ({expression})")
            except AssertionError as error:
                if "navigated" not in str(error):
                    raise
                found = None  # the page is being replaced, as the entrance is by the real one
            if found:
                return found
            if time.monotonic() > until:
                raise AssertionError(f"never true in {seconds} s: {expression}; the page says: {self.said()}")
            time.sleep(every)

    def said(self):
        """What the page shows, for messages."""
        return self.ask("(document.body ? document.body.innerText : '').slice(0, 1500)")

    def text(self, selector):
        """Text of an element."""
        return self.ask(f"document.querySelector({json.dumps(selector)}).innerText")

    def click(self, selector):
        """Click on an element with the mouse, where it is; again where the page moved under the pointer."""
        found = json.dumps(selector)
        for _ in range(5):
            box = self.ask(
                f"(() => {{ const one = document.querySelector({found}); one.scrollIntoView({{block: 'center', "
                "behavior: 'instant'}); window.clicked = false; one.addEventListener('click', () => { window.clicked = "
                "true; }, {capture: true, once: true}); return one.getBoundingClientRect().toJSON(); })()"
            )
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            if self.ask("window.clicked !== false"):
                return
        raise AssertionError(f"clicks do not reach {selector}; the page says: {self.said()}")

    def key(self, key, shift=False):
        """Press a key as a keyboard does, with what the browser does about it."""
        code, text = KEYS[key]
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        common["modifiers"] = SHIFT if shift else 0
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def tab_to(self, selector, most=80):
        """Press Tab until an element has the focus."""
        found = json.dumps(selector)
        for _ in range(most):
            if self.ask(f"document.activeElement !== null && document.activeElement.matches({found})"):
                return
            self.key("Tab")
        raise AssertionError(f"Tab does not reach {selector}")

    def set_file(self, selector, path):
        """Choose a file in an input."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def drop(self, path, selector="#drop"):
        """Drop a file from the desk onto an element."""
        box = self.ask(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + 20}
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, data=data, **place)

    def set_value(self, selector, value, events=("input", "change")):
        """Give an input or select a value, as its own events tell."""
        found, fired = json.dumps(selector), json.dumps(list(events))
        self.ask(
            f"(() => {{ const one = document.querySelector({found}); one.value = {json.dumps(str(value))}; "
            f"for (const name of {fired}) one.dispatchEvent(new Event(name, {{bubbles: true}})); }})()"
        )

    def downloaded(self, name, seconds=120.0):
        """Wait for a download to be whole, and return its bytes."""
        path, until = self.downloads / name, time.monotonic() + seconds
        while not path.exists() or list(self.downloads.glob("*.crdownload")):
            self.ask("1")  # lets events pass
            assert time.monotonic() < until, f"{name} never came: {[one.name for one in self.downloads.iterdir()]}"
            time.sleep(0.05)
        content = path.read_bytes()
        path.unlink()
        return content
