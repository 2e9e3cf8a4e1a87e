"""What can be read off an agent's traced program, such as whether a function draws random numbers or uses its key."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

# Primitives that make random numbers or new keys. Wrapping and unwrapping keys is not among them.
_DRAWS = {
    "random_bits",
    "random_fold_in",
    "random_gamma",
    "random_seed",
    "random_split",
    "rng_bit_generator",
    "rng_uniform",
    "threefry2x32",
}


class Program(NamedTuple):
    """Of a function whose first argument is a key, or might be one."""

    draws: bool
    uses_first: bool


def read_program(function: Callable, *arguments: Any) -> Program:
    """Trace a function and look at what it does; nothing is computed."""
    closed = jax.make_jaxpr(function)(*arguments)
    first = closed.jaxpr.invars[0]
    used = any(first is variable for equation in closed.jaxpr.eqns for variable in equation.invars)
    handed_on = any(first is variable for variable in closed.jaxpr.outvars)
    return Program(any(name in _DRAWS for name in _primitives(closed.jaxpr)), used or handed_on)


def same_program(first: Callable, second: Callable, *arguments: Any) -> bool:
    """Whether two functions are traced to the same operations with the same constants."""
    one, two = (_trace_anew(function, *arguments) for function in (first, second))
    texts = [re.sub(r"0x[0-9a-f]+", "", str(program)) for program in (one, two)]  # addresses in memory
    if any(isinstance(constant, jax.core.Tracer) for constant in (*one.consts, *two.consts)):
        return False  # left over from an earlier trace
    return texts[0] == texts[1] and all(
        np.array_equal(_numbers(left), _numbers(right)) for left, right in zip(one.consts, two.consts, strict=True)
    )


def _trace_anew(function: Callable, *arguments: Any) -> Any:
    # JAX remembers what it has traced by the function's identity, hence the new function.
    return jax.make_jaxpr(lambda *given: function(*given))(*arguments)


def _numbers(constant: Any) -> np.ndarray:
    is_key = jax.numpy.issubdtype(jax.numpy.asarray(constant).dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(constant) if is_key else constant)


def _primitives(program: Any) -> Iterator[str]:
    for equation in program.eqns:
        yield equation.primitive.name
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _primitives(getattr(inner, "jaxpr", inner))


def _is_program(value: Any) -> bool:
    return hasattr(getattr(value, "jaxpr", value), "eqns")
