"""What Bellief asks of JAX's compiler. Imports nothing of JAX, so that it can be said before JAX starts."""

import contextlib
import contextvars
import functools
import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

# XLA turns loops that touch few bytes a round into one piece of plain code instead of a series of small calls; its
# own limit, one kilobyte, leaves out most loops over runs and steps (benchmarks/NOTES.md has what that costs).
SMALL_LOOP = "xla_cpu_small_while_loop_byte_threshold=65536"

# Single-precision numbers that a processor works on at once. What is left over of a row is computed number by number,
# which for short rows takes longer than all the rest.
VECTOR = 8

# By default a processor's program is arranged so that its operations may run side by side. Where they are tiny, handing
# them from thread to thread takes longer than they do; arranged to save memory, nearly all wait for one another.
IN_ORDER = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}

_platform: contextvars.ContextVar[str | None] = contextvars.ContextVar("platform", default=None)


def prefer() -> None:
    """Raise that limit for this process and those it starts, unless `XLA_FLAGS` speaks of such options already; and
    take a GPU's memory when it is needed, not three quarters of it at the start, which takes seconds and gigabytes of
    ordinary memory too, unless `XLA_PYTHON_CLIENT_PREALLOCATE` says otherwise.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={SMALL_LOOP}".strip()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def prefer_on_gpu() -> None:
    """Let JAX's own kernel draw random bits on a GPU, unless `JAX_THREEFRY_GPU_KERNEL_LOWERING` speaks of it: the same
    bits, but written out in every operation that uses them they are half of what there is to compile.
    """
    import jax

    name = "jax_threefry_gpu_kernel_lowering"
    if name.upper() not in os.environ and hasattr(jax.config, name):
        jax.config.update(name, True)


@contextlib.contextmanager
def building_for(platform: str) -> Iterator[None]:
    """Programs that are traced inside are for `cpu` or `gpu`; then what is for the other need not be looked at."""
    token = _platform.set(platform)
    try:
        yield
    finally:
        _platform.reset(token)


def by_platform(plain: Callable[..., Any], on_gpu: Callable[..., Any], *arguments: Any) -> Any:
    """`on_gpu(*arguments)` in a program for an NVIDIA GPU, else `plain(*arguments)`, which must work everywhere."""
    import jax

    platform = _platform.get() or ("cpu" if jax.default_backend() == "cpu" else None)
    if platform is None:
        return jax.lax.platform_dependent(*arguments, cuda=on_gpu, default=plain)
    return (on_gpu if platform == "gpu" else plain)(*arguments)


@functools.cache
def can_order() -> bool:
    """Whether this XLA has the option of `IN_ORDER`."""
    import jax

    try:
        jax.jit(lambda: 0, compiler_options=IN_ORDER)()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def with_kernel(plain: Callable[..., Any], kernel: Callable[..., Any], *arguments: Any) -> Any:
    """As `by_platform`, with a kernel written by hand; `BELLIEF_KERNELS=0` in the environment does without it."""
    wanted = os.environ.get("BELLIEF_KERNELS") != "0" and _has_triton()
    return by_platform(plain, kernel if wanted else plain, *arguments)


@functools.cache
def _has_triton() -> bool:
    """Whether JAX can still make such kernels: it has announced that one day it will not."""
    warnings.filterwarnings("ignore", message="The Pallas Triton backend is deprecated", category=DeprecationWarning)
    try:
        importlib.import_module("jax.experimental.pallas.triton")
    except ImportError:
        return False
    return True
