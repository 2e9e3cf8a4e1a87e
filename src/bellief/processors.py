"""What this machine computes with. Imports nothing of JAX, so that it can be asked before JAX starts."""

import importlib.util
import os

# Where this variable says "gpu", as `--device gpu` makes it, light plans are not left to the processor.
INSIST = "BELLIEF_DEVICE"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processors_only() -> bool:
    """Whether JAX can find nothing but processors here."""
    return os.environ.get("JAX_PLATFORMS") == "cpu" or importlib.util.find_spec("jax_plugins") is None
