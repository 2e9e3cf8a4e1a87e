"""Cores and devices of this machine. Imports nothing of JAX, so that it can be used before JAX starts."""

import importlib.util
import os

# Where this variable is "gpu", as `--device gpu` sets it, light plans are made on the GPU too.
INSIST = "BELLIEF_DEVICE"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processors_only() -> bool:
    """Whether JAX can find only CPUs here."""
    return os.environ.get("JAX_PLATFORMS") == "cpu" or importlib.util.find_spec("jax_plugins") is None
