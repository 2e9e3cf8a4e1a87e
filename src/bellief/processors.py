"""Cores and devices of this machine. Imports nothing of JAX, so that it can be used before JAX starts."""

import importlib.util
import os
from pathlib import Path

from bellief.errors import UserError

# Where this variable is "gpu", as `--device gpu` sets it, light plans are made on the GPU too.
INSIST = "BELLIEF_DEVICE"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processors_only() -> bool:
    """Whether JAX can find only CPUs here."""
    return os.environ.get("JAX_PLATFORMS") == "cpu" or importlib.util.find_spec("jax_plugins") is None


def available_memory() -> int | None:
    """Bytes that can still be had, within the limit of the container if there is one; None where it is not known."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(1024 * int(line.split()[1]))
    except (OSError, ValueError, IndexError):
        pass
    group = Path("/sys/fs/cgroup")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            found.append(max(int((group / limit).read_text()) - int((group / used).read_text()), 0))
        except (OSError, ValueError):
            continue
    return min(found, default=None)


def check_memory(needed: int, what: str, advice: str) -> None:
    """Refuse what would not fit into memory, by an estimate, before it is allocated."""
    available = available_memory()
    if available is not None and needed > available:
        size, left = (f"{number / 2**30:.3g} GiB" for number in (needed, available))
        raise UserError(f"{what} need about {size} of memory, and {left} are free: {advice}.")
