"""An address at which no Ray cluster answers is refused in one sentence, and within seconds."""

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import bellief
from bellief import ray_cluster
from bellief.errors import UserError
from sweeps.conftest import TINY

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture
def server():
    """A server that answers every connection with the same bytes, or with silence; it gives its address."""
    sockets = []

    def start(answer: bytes) -> str:
        listening = socket.create_server(("", 0))
        sockets.append(listening)

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                sockets.append(connection)
                # A client that has seen enough may be gone.
                with contextlib.suppress(OSError):
                    connection.sendall(answer)
                    if answer:
                        connection.shutdown(socket.SHUT_WR)

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listening.getsockname()[1]}"

    yield start
    for one in sockets:
        one.close()


class FakeRay:
    """Ray that is reached if it is asked for at all."""

    class util:
        @staticmethod
        def get_node_ip_address():
            return "127.0.0.1"

    def __init__(self):
        self.asked = []

    def init(self, **options):
        self.asked.append(options["address"])


def test_one_that_speaks_as_ray_does_is_joined(server, monkeypatch):
    address, ray = server(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])), FakeRay()
    ray_cluster.join(ray, address)
    ray_cluster.join(ray, f"ray://{address}")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray_cluster.join(ray, "auto")
    ray_cluster.join(ray, None)
    assert ray.asked == [address, f"ray://{address}", "auto", "local"]


@pytest.mark.parametrize("address", ["", "nonsense", "127.0.0.1:99999", "127.0.0.1:0", "http://127.0.0.1:80", "a b:1"])
def test_an_address_without_host_or_port(address):
    with pytest.raises(UserError, match="an address is auto, or HOST:PORT"):
        ray_cluster.join(FakeRay(), address)


def test_others_are_refused(server, monkeypatch):
    monkeypatch.setattr(ray_cluster, "PATIENCE", 1.0)
    with pytest.raises(UserError, match="what answers there is not Ray"):
        ray_cluster.join(FakeRay(), server(b"HTTP/1.0 400 Bad request\r\n\r\n"))
    with pytest.raises(UserError, match=r"no answer within 0\.5 seconds"):
        ray_cluster.join(FakeRay(), server(b""))
    closed = socket.create_server(("", 0))
    address = f"127.0.0.1:{closed.getsockname()[1]}"
    closed.close()
    with pytest.raises(UserError, match=f"'{address}' .*refused"):
        ray_cluster.join(FakeRay(), address)
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UserError, match=r"'auto' .*refused"):
        ray_cluster.join(FakeRay(), "auto")


def test_a_name_that_takes_for_ever_to_resolve(monkeypatch):
    over = threading.Event()

    def wait(*_):
        over.wait()
        raise OSError("too late")

    monkeypatch.setattr(ray_cluster, "PATIENCE", 0.2)
    monkeypatch.setattr(socket, "create_connection", wait)
    with pytest.raises(UserError, match=r"no answer within 0\.2 seconds"):
        ray_cluster.join(FakeRay(), "slow.example:6379")
    over.set()


@pytest.mark.long
@pytest.mark.parametrize("command", ["tally", "sweep"])
def test_commands(tmp_path, command):
    """Each in a process of its own, which is given less time than `ray.init` takes to give up."""
    (tmp_path / "log.csv").write_text("state,action,reward,next_state\n0,0,1,1\n1,0,0,0\n")
    (tmp_path / "sweep.yaml").write_text(json.dumps(TINY))
    closed = socket.create_server(("", 0))
    address = f"127.0.0.1:{closed.getsockname()[1]}"
    closed.close()
    file = {"tally": "log.csv", "sweep": "sweep.yaml"}[command]
    found = subprocess.run(
        [sys.executable, "-m", "bellief", command, file, "--engine", "ray", "--address", address],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(bellief.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=40,
    )
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert f"Ray cannot be reached at '{address}'" in found.stderr
