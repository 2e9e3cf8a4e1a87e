"""What a result was made with: versions, hardware, backend."""

import functools
import importlib.metadata
import os
import platform
import socket
import subprocess
from pathlib import Path
from typing import Any

from bellief.processors import cores, processors_only

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "pyarrow", "gymnasium")

# One thread for each computation, JAX's own and those of OpenBLAS, through which its linear algebra goes: sums are then
# taken in one order, however many cores a machine has, and workers side by side do not fight for cores.
ONE_THREAD = {"PJRT_NPROC": "1", "OPENBLAS_NUM_THREADS": "1"}


def worker_environment() -> dict[str, str]:
    """Variables of a process that computes cells; what is set already stays.

    Beside a GPU there is one such process, and what steps on the host needs all cores.
    """
    return {name: os.environ.get(name, value) for name, value in ONE_THREAD.items()} if processors_only() else {}


@functools.cache
def software() -> dict[str, Any]:
    """Versions of Bellief, Python and what the numbers depend on."""
    from bellief import __version__

    versions: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {"bellief": __version__, "commit": _commit(), "python": platform.python_version(), **versions}


@functools.cache
def hardware() -> dict[str, Any]:
    """The machine, as far as it is known."""
    return {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": _memory(),
    }


def fingerprint(device: Any) -> dict[str, Any]:
    """Of what plans on a device of JAX's: equal fingerprints promise equal bits."""
    import jax

    made = {name: value for name, value in software().items() if name not in ("commit", "pyarrow", "gymnasium")}
    return {
        **made,
        "backend": device.platform,
        "device": device.device_kind,
        "machine": platform.machine(),
        "processor": _processor(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "threads": os.environ.get("PJRT_NPROC") or str(cores()),
        "optimisations": not jax.config.read("jax_disable_most_optimizations"),
        "x64": bool(jax.config.read("jax_enable_x64")),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def _commit() -> str | None:
    """The commit of the source tree Bellief runs from; none where it was installed."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.stdout.strip() or None
