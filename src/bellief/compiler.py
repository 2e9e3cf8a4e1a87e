"""What Bellief asks of JAX's compiler. Imports nothing, so that it can be said before JAX starts."""

import os

# XLA turns loops that touch few bytes a round into one piece of plain code instead of a series of small calls; its
# own limit, one kilobyte, leaves out most loops over runs and steps (benchmarks/NOTES.md has what that costs).
SMALL_LOOP = "xla_cpu_small_while_loop_byte_threshold=65536"

# Single-precision numbers that a processor works on at once. What is left over of a row is computed number by number,
# which for short rows takes longer than all the rest.
VECTOR = 8


def prefer_plain_loops() -> None:
    """Raise that limit for this process and those it starts, unless `XLA_FLAGS` speaks of such options already."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={SMALL_LOOP}".strip()
