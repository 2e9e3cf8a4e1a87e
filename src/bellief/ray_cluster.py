"""Joining a Ray cluster: an address at which none answers is refused within seconds.

`ray.init` itself tries for minutes, and prints warnings meanwhile.

>>> from bellief.ray_cluster import split_address
>>> split_address("10.0.0.7:6379"), split_address("[::1]:6379"), split_address("6379")
(('10.0.0.7', 6379), ('::1', 6379), None)
"""

import os
import re
import socket
import threading
import time
from typing import Any

from bellief.errors import UserError, shorten

# Seconds for a name to be resolved, a connection to be made, and a first answer to come, all together.
PATIENCE = 10.0

# Ray's servers speak HTTP/2, whose two sides begin with settings: type 4 at byte 3 of a frame's header of 9.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
HEADER, SETTINGS = 9, 4

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def join(ray: Any, address: str | None, **private: Any) -> None:
    """Join the cluster at an address or, without one, start a private cluster with these options on this machine."""
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address is None:
            ray.init(address="local", num_gpus=0, include_dashboard=False, **private, **quiet)
        else:
            _check_address(ray, address)
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        what = shorten(" ".join(str(error).split()), 200).rstrip(".")
        place = "on this machine" if address is None else f"at '{shorten(address, 80)}'"
        raise UserError(
            f"Ray cannot be reached {place} ({what}); start it with 'ray start', or leave out --address."
        ) from error


def split_address(address: str) -> tuple[str, int] | None:
    """Host and port; nothing where an address has not both."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s\[\]:/]+)):([0-9]{1,5})", address)
    if found is None or not 0 < int(found[3]) < 2**16:
        return None
    return found[1] or found[2], int(found[3])


def _check_address(ray: Any, address: str) -> None:
    """A server that may be Ray's must answer there."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", address)
    if address in ("auto", "local"):  # Ray looks for processes of its own, which takes no time
        return
    place = split_address(address.removeprefix("ray://"))
    if place is None:
        raise ValueError("an address is auto, or HOST:PORT")
    host, port = place
    if host in LOOPBACK:  # Ray takes the machine's own address instead
        host = ray.util.get_node_ip_address()
    failed: list[OSError] = []
    # A name may take longer to resolve than anybody wants to wait, and nothing interrupts that.
    asking = threading.Thread(target=_ask, args=(host, port, failed), daemon=True)
    asking.start()
    asking.join(PATIENCE)
    if asking.is_alive():
        raise TimeoutError(f"no answer within {PATIENCE:g} seconds")
    if failed:
        raise failed[0]


def _ask(host: str, port: int, failed: list[OSError]) -> None:
    until = time.monotonic() + PATIENCE / 2
    try:
        with socket.create_connection((host, port), PATIENCE / 2) as connection:
            connection.sendall(GREETING)
            answer = b""
            while len(answer) < HEADER:
                connection.settimeout(max(until - time.monotonic(), 0.1))
                more = connection.recv(HEADER - len(answer))
                if not more:
                    break
                answer += more
    except TimeoutError:
        failed.append(TimeoutError(f"no answer within {PATIENCE / 2:g} seconds"))
    except OSError as error:
        failed.append(OSError(error.strerror or str(error)))
    else:
        if len(answer) < HEADER or answer[3] != SETTINGS:
            failed.append(OSError("what answers there is not Ray"))
