"""Start the server: its own socket, a link with a token, a browser; temporary files are removed at the end."""

import contextlib
import ipaddress
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from typing import Any

import uvicorn

from bellief.app.opened_log import PREFIX
from bellief.app.security import Access
from bellief.app.server import make_app
from bellief.app.uploads import LARGEST_UPLOAD
from bellief.app.workspaces import Workspaces
from bellief.errors import UserError
from bellief.logs.examples import example_path

LOCAL = "127.0.0.1"


class Server(uvicorn.Server):
    """Tells when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self._ready()


def serve(
    log: str | None = None,
    host: str = LOCAL,
    port: int = 0,
    browser: bool = True,
    most: int = LARGEST_UPLOAD,
    debug: bool = False,
    echo: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted.

    Args:
        log: a file, or `example:NAME`, that new tabs open.
        host: the address to listen on; any but a loopback address lets other machines in, and that is said.
        port: 0 takes a free one.
        browser: open the page in a browser.
        most: megabytes of the largest upload.
        debug: print tracebacks, which may quote the data.
        echo: receives lines of text.
    """
    first = _checked(log)
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    access = Access(_names(host), port, any_address=_is_everything(host))
    workspaces = Workspaces()
    shown = _shown(host)
    link = f"http://{shown}:{port}/?token={access.token}"

    def ready() -> None:
        for line in _announcement(host, link):
            echo(line)
        if browser:
            threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()

    config = uvicorn.Config(
        make_app(access, workspaces, first, most, debug), access_log=False, log_level="error", server_header=False,
        timeout_graceful_shutdown=1, lifespan="on",
    )  # fmt: skip
    try:
        with contextlib.suppress(KeyboardInterrupt):
            Server(config, ready).run(sockets=[listening])
    finally:
        workspaces.close()
        listening.close()
        print("Bellief has stopped; uploaded files are removed.", file=sys.stderr)


def _checked(log: str | None) -> str | None:
    if log is None:
        return None
    if log.startswith(PREFIX):
        example_path(log)
        return log
    if not os.path.isfile(log):
        raise UserError(f"{log} is not a file: give the path of a CSV or Parquet file, or example:clinic.")
    return log


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        return listening
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"Bellief cannot listen on {host}, port {port} ({reason}): choose another --port or --host."
        ) from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_everything(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _names(host: str) -> tuple[str, ...]:
    """Names that a Host header may have."""
    local = ("localhost", LOCAL, "[::1]")
    own = f"[{host}]" if ":" in host else host
    if is_loopback(host):
        return (*local, own)
    return (*local, own, socket.gethostname(), socket.getfqdn())


def _shown(host: str) -> str:
    if _is_everything(host):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _announcement(host: str, link: str) -> list[str]:
    lines = []
    if not is_loopback(host):
        lines = [
            f"--host {host} lets other machines on your network in. Whoever has the link below can read the logs that "
            "are opened here and use this machine to compute; what is sent is not encrypted.",
            "Nobody gets in without the link: it holds a random token, which is asked for in every request. Give it "
            "only to people you trust, over a network you trust.",
        ]
    return [*lines, f"Bellief is at {link}", "Press Ctrl-C to stop it; uploaded files are removed then."]
