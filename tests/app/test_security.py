"""Attacks on the server, each refused. Requests are sent by hand, so that nothing a browser does helps."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.conftest import Server, User
from bellief.app.jobs import answer_error
from bellief.app.security import Access
from bellief.app.uploads import stored_name

LOG = b"state,action,reward,next_state\n0,0,1,1\n1,1,0,0\n"


def status_of(server, *arguments, **options):
    return server.request(*arguments, **options)[0]


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "[::1", ""],
)
def test_another_host_is_refused(server, user, host):
    """A name that an attacker points at 127.0.0.1 (DNS rebinding) does not become ours."""
    host = host.format(port=server.port)
    assert status_of(server, "GET", "/", cookie=user.cookie, host=host or " ") in (400, 421)
    assert status_of(server, "GET", f"/?token={server.token}", host=host or " ") in (400, 421)


def test_two_hosts_are_refused(server, user):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(
            f"GET / HTTP/1.1\r\nHost: {server.host}\r\nHost: evil.example\r\nCookie: {user.cookie}\r\n\r\n".encode()
        )
        assert connection.recv(100).split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://{host}", "http://127.0.0.1:1", "http://localhost:{port}", None]
)
def test_another_origin_is_refused(server, user, origin):
    """Also where the request carries the right cookie: a browser sends it for whatever page asks."""
    origin = origin and origin.format(host=server.host, port=server.port)
    path = f"/api/w/{user.workspace}/example"
    assert status_of(server, "POST", path, {"name": "clinic"}, cookie=user.cookie, origin=origin) == 403
    assert user.ask("value", policy="behaviour", discount=0.9, level=0.9, prior_weight=0.1)["error"].startswith(
        "No log"
    )


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/static/app.css", "/api/w/x/events", "/api/w/x/files/value/report.html"])
def test_nothing_is_given_to_other_sites(server, user, site, path):
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": "script"}
    assert status_of(server, "GET", path, headers=headers, cookie=user.cookie) == 403


@pytest.mark.parametrize("path", ["/", "/static/app.css", "/api/w/x/events", "/static/plotly-basic.min.js", "/nowhere"])
def test_without_a_token_nothing_is_shown(server, path):
    assert status_of(server, "GET", path) == 403
    assert status_of(server, "GET", path, cookie=f"bellief_{server.port}=guessed") == 403
    assert status_of(server, "POST", "/api/workspaces", {}) == 403


@pytest.mark.parametrize("token", ["", "x", "TOKEN"])
def test_a_wrong_token_is_refused(server, token):
    status, headers, _ = server.request("GET", f"/?token={token}")
    assert status == 403
    assert "Set-Cookie" not in headers


def test_the_cookie_is_out_of_reach(server):
    status, headers, text = server.request("GET", f"/?token={server.token}")
    assert status == 200
    assert server.token not in text
    flags = {part.strip().lower() for part in headers["Set-Cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= flags


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"])
def test_a_form_of_another_site_is_refused(server, user, kind):
    """What a form can send: these three types, no header of its own, the other site's origin."""
    body = b'{"name": "clinic"}'
    path = f"/api/w/{user.workspace}/example"
    headers = {"Content-Type": kind}
    assert status_of(server, "POST", path, body, headers, user.cookie, origin="http://evil.example") == 403
    assert status_of(server, "POST", path, body, headers, user.cookie) == 415


def test_every_answer_is_told_what_it_may_do(server, user):
    for path, cookie in (("/", user.cookie), ("/static/main.js", user.cookie), ("/", None), ("/nowhere", user.cookie)):
        _, headers, _ = server.request("GET", path, cookie=cookie)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "server" not in headers


@pytest.fixture(scope="module")
def small_server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("small"), "--max-upload", "1")
    yield made
    made.stop()


def files_in(server):
    return [path for path in server.folder.rglob("*") if path.is_file()]


def test_an_upload_that_says_it_is_too_large_is_refused(small_server):
    user = User(small_server)
    with socket.create_connection(("127.0.0.1", small_server.port), timeout=60) as connection:
        head = (
            f"POST /api/w/{user.workspace}/log HTTP/1.1\r\nHost: {small_server.host}\r\n"
            f"Origin: {small_server.origin}\r\nCookie: {user.cookie}\r\nX-File-Name: a.csv\r\n"
            "Content-Length: 1000001\r\n\r\n"
        )
        connection.sendall(head.encode())  # and not a byte of the file
        answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert answer.split()[1] == b"413"
    assert b'"a.csv is larger than 1 MB' in answer
    assert files_in(small_server) == []


def test_an_upload_that_hides_its_size_is_cut_off(small_server):
    """In pieces, without a length, as long as the server takes it."""
    user = User(small_server)
    with socket.create_connection(("127.0.0.1", small_server.port), timeout=60) as connection:
        head = (
            f"POST /api/w/{user.workspace}/log HTTP/1.1\r\nHost: {small_server.host}\r\n"
            f"Origin: {small_server.origin}\r\n"
            f"Cookie: {user.cookie}\r\nX-File-Name: a.csv\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        connection.sendall(head.encode())
        piece = b"%x\r\n" % 100_000 + b"x" * 100_000 + b"\r\n"
        sent = 0
        try:
            while sent < 300:
                connection.sendall(piece)
                sent += 1
        except OSError:
            pass
        assert sent < 300
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(100).split()[1] == b"413"
    assert files_in(small_server) == []


@pytest.mark.parametrize(
    "name",
    [
        "../../../../tmp/evil.csv",
        "..%2f..%2fevil.csv",
        "/etc/cron.d/evil",
        "C:\\evil.csv",
        "a\x00b.csv",
        ".",
        "..",
        "con.csv/..",
        "%2e%2e%2f%2e%2e%2fevil.csv",
    ],
)
def test_names_of_files_lead_nowhere(server, user, name):
    before = {path for path in server.folder.rglob("*") if path.is_file()}
    told = user.upload(LOG, name.replace("\x00", "%00"))
    assert told.get("rows") == 2, told
    new = {path for path in server.folder.rglob("*") if path.is_file()} - before
    assert [path.name for path in new] == ["log.csv"]
    assert "/" not in told["name"]
    assert "\\" not in told["name"]


def test_names_on_disk_have_known_endings_only():
    given = ["a.csv", "a.CSV.GZ", "a.parquet", "a.sh", "a", "a.csv.sh", "..", "a.json.zst", "x.gz"]
    wanted = [
        "log.csv",
        "log.csv.gz",
        "log.parquet",
        "log.csv",
        "log.csv",
        "log.csv",
        "log.csv",
        "log.json.zst",
        "log.csv.gz",
    ]
    assert [stored_name(name) for name in given] == wanted


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/server.py", "/static/....//server.py"]
)
def test_no_other_file_is_served(server, user, path):
    status, _, text = server.request("GET", path, cookie=user.cookie)
    assert status == 404
    assert "import" not in text


@pytest.mark.parametrize("policy", ["/etc/passwd", "saved:../x", "log.csv", "always:7", None, {"a": 1}])
def test_a_policy_is_never_a_path(user, policy):
    user.upload(LOG)
    told = user.ask("value", policy=policy, discount=0.9, level=0.9, prior_weight=0.1)
    assert "error" in told
    assert "root" not in told["error"]


def test_a_file_of_the_machine_is_not_read_for_a_page(user, tmp_path):
    user.upload(LOG)
    path = tmp_path / "policy.csv"
    path.write_text("state,action,probability\n0,0,1\n1,0,1\n")
    told = user.ask("value", policy=str(path), discount=0.9, level=0.9, prior_weight=0.1)
    assert told["error"].startswith("There is no policy")
    assert user.ask("example", name=f"../../../..{path}")["error"].startswith("There is no example log")


def test_another_users_workspace_is_out_of_reach(server, user):
    other = User(server)
    assert user.upload(LOG)["rows"] == 2
    theirs = f"/api/w/{user.workspace}"
    for what in ("value", "state", "check", "columns", "example", "compare", "agents-control", "cancel"):
        assert status_of(server, "POST", f"{theirs}/{what}", {}, cookie=other.cookie) == 404
    assert status_of(server, "POST", f"{theirs}/log", LOG, {"X-File-Name": "a.csv"}, other.cookie) == 404
    for what in ("events", "files/value/report.html", "files/agents/curves.csv"):
        assert status_of(server, "GET", f"{theirs}/{what}", cookie=other.cookie) == 404
    resumed = other.post("/api/workspaces", {"resume": user.workspace})
    assert resumed["workspace"] not in (user.workspace, other.workspace)


@pytest.mark.parametrize("body", [b"[]", b"3", b"{", b"\xff", b"[" * 100_000])
def test_questions_that_are_none_are_refused_in_a_sentence(server, user, body):
    path = f"/api/w/{user.workspace}/value"
    status, _, text = server.request("POST", path, body, {"Content-Type": "application/json"}, user.cookie)
    assert status == 200
    assert json.loads(text)["error"] == "A question must be a JSON object."


def test_the_log_of_the_server_has_nothing_of_the_data(server, user):
    secret = "patient-4711-secret"
    user.upload(f"state,action,reward,next_state\n{secret},0,1,{secret}\n".encode(), f"{secret}.csv")
    user.upload(f"state,action,reward,next_state\n{secret},0,{secret},1\n".encode())
    user.ask("value", policy=f"always:{secret}", discount=0.9, level=0.9, prior_weight=0.1)
    user.upload(f"state,action,reward,next_state\n{secret},0,1,{secret}\n".encode(), f"{secret}.csv")
    assert "error" in user.ask("save-policy", base="behaviour", rows=[secret], name=secret)
    time.sleep(1)  # lines that should not be there would come late
    assert secret not in "\n".join(server.lines)
    assert server.token not in "\n".join(line for line in server.lines if "Bellief is at" not in line)


def test_a_bug_is_told_without_what_it_quotes(capsys):
    answer = answer_error(KeyError("patient-4711-secret"))
    assert answer.status_code == 500
    assert b"This is a bug in Bellief (KeyError)" in answer.body
    said = capsys.readouterr()
    assert "secret" not in said.err + said.out + answer.body.decode()
    assert "KeyError" in said.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_folder_is_private_and_gone_at_the_end(tmp_path, number):
    made = Server(tmp_path)
    try:
        User(made).upload(LOG)
        (folder,) = tmp_path.glob("bellief-app-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600]
    finally:
        code = made.stop(number)
    assert code == (0 if number == signal.SIGINT else 143)
    assert list(tmp_path.iterdir()) == []


def test_other_machines_are_let_in_only_when_told_and_then_it_is_said(tmp_path):
    made = Server(tmp_path, "--host", "0.0.0.0")
    try:
        said = " ".join(made.lines)
        assert "lets other machines" in said
        assert "token" in said
        assert status_of(made, "GET", "/") == 403
        assert status_of(made, "GET", f"/?token={made.token}", host=f"192.0.2.7:{made.port}") == 200
        assert status_of(made, "GET", f"/?token={made.token}", host=f"evil.example:{made.port}") == 421
    finally:
        made.stop()


def test_by_default_only_this_machine_is_let_in(server):
    text = Path("/proc/net/tcp").read_text()
    listening = [line.split()[1] for line in text.splitlines()[1:] if line.split()[3] == "0A"]
    ours = [place for place in listening if place.endswith(f":{server.port:04X}")]
    assert ours == [f"0100007F:{server.port:04X}"]
    assert "other machines" not in " ".join(server.lines)


def test_names_of_a_server():
    access = Access(("localhost", "127.0.0.1"), 80)
    assert [access.serves(host) for host in ("localhost", "LOCALHOST:80", "127.0.0.1:81", "evil", None)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    everywhere = Access(("localhost",), 8000, any_address=True)
    assert [everywhere.serves(host) for host in ("10.0.0.1:8000", "[fe80::1]:8000", "evil.example:8000")] == [
        True,
        True,
        False,
    ]


def test_without_the_extra_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['uvicorn'] = None; from bellief.cli import main; sys.exit(main(['app']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 2
    assert done.stderr == "bellief app needs two more packages: pip install 'bellief[app]'.\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nowhere.csv"], "nowhere.csv is not a file"),
        (["example:clinc"], "did you mean"),
        (["--port", "99999"], "--port"),
        (["--host", "not a host"], "cannot listen"),
    ],
)
def test_mistakes_of_the_command(options, said):
    done = subprocess.run(
        [sys.executable, "-m", "bellief", "app", "--no-browser", *options], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
