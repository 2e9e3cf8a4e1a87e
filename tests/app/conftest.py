"""A server in a process of its own, plain HTTP to talk to it, and a browser."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs bellief[app]")

from app.chromium import Chromium
from report import browser as chromium

FOLDER = Path(__file__).parent


class Server:
    """`bellief app` as a person starts it."""

    def __init__(self, folder, *options):
        self.folder = Path(folder)
        environment = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "bellief", "app", "--no-browser", *options]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines = []
        self._linked = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._linked.wait(180), self.lines
        self.link = re.search(r"http://\S+", "\n".join(self.lines)).group()
        self.token = self.link.partition("token=")[2]
        self.port = int(re.search(r":(\d+)/", self.link).group(1))
        self.host = f"127.0.0.1:{self.port}"
        self.origin = f"http://{self.host}"

    def _read(self):
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip())
                if "Press Ctrl-C" in line:
                    self._linked.set()
        self._linked.set()

    def stop(self, number=signal.SIGINT):
        """End it, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(60)
            self._reader.join(5)
            return code
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def seconds(self):
        """Processor time that the server has used so far."""
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def request(self, method, path, body=None, headers=None, cookie=None, host=None, origin="own"):
        """One request as any program can send it: status, headers and text of the answer."""
        sent = {"Host": host or self.host}
        if origin == "own" and method != "GET":
            sent["Origin"] = self.origin
        elif origin not in ("own", None):
            sent["Origin"] = origin
        if cookie:
            sent["Cookie"] = cookie
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body=body, headers=sent | (headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()


class User:
    """A browser that has followed the link: its cookie, and a workspace."""

    def __init__(self, server):
        self.server = server
        status, headers, _ = server.request("GET", f"/?token={server.token}")
        assert status == 200
        self.cookie = headers["Set-Cookie"].partition(";")[0]
        self.workspace = self.post("/api/workspaces", {})["workspace"]

    def post(self, path, body, headers=None):
        """The answer to a question, as an object."""
        status, _, text = self.server.request("POST", path, body, headers, self.cookie)
        assert status == 200, (status, text)
        return json.loads(text)

    def ask(self, what, **question):
        """The same of the workspace."""
        return self.post(f"/api/w/{self.workspace}/{what}", question)

    def upload(self, content, name="log.csv"):
        """Send a file."""
        return self.post(f"/api/w/{self.workspace}/log", content, {"X-File-Name": name})


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("server"))
    yield made
    made.stop()


@pytest.fixture
def user(server):
    return User(server)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    program = chromium.find_or_skip()
    made = Chromium(program, tmp_path_factory.mktemp("profile"), tmp_path_factory.mktemp("downloads"))
    yield made
    made.close()


@pytest.fixture
def page(browser, server):
    """The page as it is opened; afterwards nothing may have gone wrong, and nothing may have left the machine."""
    browser.open(server.link, 1300)
    browser.wait("document.body.dataset.ready")
    browser.ask("sessionStorage.clear(); localStorage.clear()")
    browser.open(server.origin + "/", 1300)
    browser.wait("document.body.dataset.ready")
    yield browser
    browser.ask("1")
    assert browser.complaints == []
    elsewhere = [url for url in browser.requests if not url.startswith((server.origin, "data:", "blob:", "about:"))]
    assert elsewhere == []


@pytest.fixture(scope="session")
def axe():
    """The accessibility checker, as a script."""
    return (FOLDER / "axe" / "axe.min.js").read_text(encoding="utf-8")
