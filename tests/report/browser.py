"""A headless Chromium that is told what to do over a pipe, with nothing but the standard library.

Chromium's protocol: messages in JSON, each ended by a zero byte, on file descriptors 3 (to it) and 4 (from it).
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

import pytest

# Puts the pipes on the descriptors that Chromium wants, out of each other's way first, and becomes Chromium.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 20) for number in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """Where the browser is, None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def find_or_skip():
    """Where the browser is; without one the tests are skipped, or fail if BELLIEF_NEED_BROWSER is set."""
    program = find()
    if program is None and os.environ.get("BELLIEF_NEED_BROWSER"):
        pytest.fail("no Chromium was found, and BELLIEF_NEED_BROWSER is set")
    if program is None:
        pytest.skip("no Chromium was found; on Debian: apt-get install chromium")
    return program


class Browser:
    """One browser with one page. `requests` and `complaints` are what the page asked for and what went wrong."""

    def __init__(self, program, profile):
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()
        flags = (
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars "
            "--disable-background-networking --disable-background-timer-throttling --disable-renderer-backgrounding "
            "--disable-backgrounding-occluded-windows --remote-debugging-pipe"
        )
        pipes = [str(to_read), str(from_write)]
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", LAUNCH, *pipes, program, *flags.split(), f"--user-data-dir={profile}"],
            pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.number, self.session = b"", 0, None
        self.requests, self.complaints, self.loaded = [], [], False
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """Ask for something and wait for the answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _read(self, seconds=180):
        until = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self.back, 1 << 16)
            assert part, "the browser is gone"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        event = json.loads(message)
        self._note(event.get("method"), event.get("params", {}))
        return event

    def _note(self, method, told):
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif (method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert")) or (
            method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning")
        ):
            self.complaints.append(json.dumps(told))
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, address, width=1280, height=900, dark=False, script=True):
        """Load a page at a size; without `script`, as a browser that runs none."""
        self.requests, self.complaints, self.loaded = [], [], False
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.resize(width, height)
        self.prefer("dark" if dark else "light")
        self.send("Page.navigate", url=address)
        while not self.loaded:
            self._read()

    def resize(self, width, height=900):
        """Give the page another size."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)

    def prefer(self, scheme):
        """What the system prefers, light or dark."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def ask(self, expression):
        """The value of a JavaScript expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def move(self, x, y):
        """Put the pointer somewhere."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key):
        """Press and release a key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def picture(self, path, whole=True):
        """Save a picture of the page."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self):
        """End the browser."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
