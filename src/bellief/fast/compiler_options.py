"""Options of JAX's compiler that speed runs up. Imports nothing of JAX, because they are read when JAX starts.

The command line sets them in its own process. A program that uses Bellief as a library may do the same, before it
computes anything with JAX:

    from bellief.fast.compiler_options import set_process_options
    set_process_options()
"""

import functools
import os

# XLA compiles loops that touch few bytes an iteration into one piece of plain code instead of a series of small calls;
# its own limit, one kilobyte, excludes most loops over runs and steps (benchmarks/NOTES.md has what that costs).
SMALL_LOOP = "xla_cpu_small_while_loop_byte_threshold=65536"

# By default a CPU program is arranged so that its operations may run concurrently. Where they are tiny, handing them
# from thread to thread takes longer than they do; arranged to save memory, nearly all wait for one another.
IN_ORDER = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


def set_process_options() -> None:
    """Set what speeds up runs in this process and those it starts, through environment variables.

    - `XLA_FLAGS`: raises XLA's limit for small loops, unless the variable sets such options already.
    - `XLA_PYTHON_CLIENT_PREALLOCATE`: a GPU's memory is taken when it is needed, not three quarters of it at the start,
      which takes seconds, unless the variable is set.

    Call it before JAX computes anything: XLA reads the variables once.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={SMALL_LOOP}".strip()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def use_gpu_generator() -> None:
    """Let JAX's own kernel draw random bits on a GPU, unless `JAX_THREEFRY_GPU_KERNEL_LOWERING` is set: the same bits,
    but inlined into every operation that uses them they are half of what there is to compile.
    """
    import jax

    name = "jax_threefry_gpu_kernel_lowering"
    if name.upper() not in os.environ and hasattr(jax.config, name):
        jax.config.update(name, True)


@functools.cache
def can_order() -> bool:
    """Whether this XLA has the option of `IN_ORDER`."""
    import jax

    try:
        jax.jit(lambda: 0, compiler_options=IN_ORDER)()
    except jax.errors.JaxRuntimeError:
        return False
    return True
