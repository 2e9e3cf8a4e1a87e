"""One writer at a time: a lock file that says who holds it, and that is recognised as left behind when he is gone.

Shards of one sweep (2/4, 3/4, ...) have different cells and may write side by side; nothing else may.
"""

import contextlib
import fcntl
import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bellief.errors import UserError
from bellief.files import write_whole

# The holder touches its lock this often; on another machine it counts as gone after so long a silence.
BEAT, SILENCE = 10.0, 120.0

Shard = tuple[int, int]


@contextlib.contextmanager
def hold(folder: Path, shard: Shard | None = None) -> Iterator[bool]:
    """Hold the lock of a store while the block runs. Yields whether a lock that was left behind has been removed."""
    path = folder / ("lock.json" if shard is None else f"lock-{shard[0]}-of-{shard[1]}.json")
    mine = _describe_self(shard)
    with _one_at_a_time(folder):
        stale = _clear_stale(folder, shard)
        write_whole(path, json.dumps(mine).encode())
    over = threading.Event()
    beat = threading.Thread(target=_beat, args=(path, over), daemon=True)
    beat.start()
    try:
        yield stale
    finally:
        over.set()
        beat.join()
        with contextlib.suppress(OSError, ValueError):
            if json.loads(path.read_bytes())["token"] == mine["token"]:
                path.unlink()


def _clear_stale(folder: Path, shard: Shard | None) -> bool:
    """Remove locks whose holders are gone; refuse where one is at work on the same cells."""
    stale = False
    for path in sorted(folder.glob("lock*.json")):
        try:
            holder = json.loads(path.read_bytes())
            known = isinstance(holder, dict) and {"pid", "place", "started", "host"} <= set(holder)
        except FileNotFoundError:
            continue
        except (ValueError, OSError):
            known = False
        if not known:
            holder = {"pid": "?", "host": "?", "place": None, "started": None, "shard": None}
        if _gone(path, holder):
            path.unlink(missing_ok=True)
            stale = True
        elif not _apart(shard, holder.get("shard")):
            raise UserError(
                f"{folder} is being written by process {holder['pid']} on {holder['host']}; wait for it to end, or "
                f"stop it. If you are sure that it is gone, delete {path}."
            )
    return stale


def _apart(shard: Shard | None, other: Any) -> bool:
    """Whether two writers have different cells: shards of the same number, not the same one."""
    return shard is not None and other is not None and shard[1] == other[1] and shard[0] != other[0]


def _gone(path: Path, holder: dict[str, Any]) -> bool:
    if holder["place"] == _place():
        return _started(int(holder["pid"])) != holder["started"]
    # Another machine: only its silence tells. Measured by the file system's own clock.
    probe = path.with_name(f".clock-{secrets.token_hex(4)}")
    try:
        probe.touch()
        return probe.stat().st_mtime - path.stat().st_mtime > SILENCE
    except FileNotFoundError:
        return True
    finally:
        probe.unlink(missing_ok=True)


def _describe_self(shard: Shard | None) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "place": _place(),
        "started": _started(os.getpid()),
        "shard": None if shard is None else list(shard),
        "token": secrets.token_hex(16),
    }


def _place() -> str:
    """What process numbers mean the same in: one boot of one machine, one container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """When a process began, or nothing where there is none; tells it from another that was given its number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return None
    except OSError:
        return None
    try:  # no /proc: alive or not is all that can be known
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "alive"


def _beat(path: Path, over: threading.Event) -> None:
    while not over.wait(BEAT):
        with contextlib.suppress(OSError):
            os.utime(path)


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Two that come at the same moment must not both find the lock free. The system frees this one by itself."""
    with open(folder / ".door", "w") as door:
        with contextlib.suppress(OSError):  # a file system without such locks
            fcntl.flock(door, fcntl.LOCK_EX)
        yield
