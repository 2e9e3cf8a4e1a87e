"""Functions that a faster equivalent may replace.

Algorithms mark such a function with `@replaceable` and know nothing else: called directly they compute what is written
there. The package `bellief.fast` lists the replacements, and a loop that wants them makes them active with `using`.

>>> from bellief.replaceable import replaceable, using
>>> @replaceable
... def double(number):
...     return number + number
>>> class Shift:
...     @staticmethod
...     def when(number):
...         return number >= 0
...     @staticmethod
...     def load():
...         return lambda number: number << 1
>>> with using({double.name: (Shift,)}):
...     print(double(3), double(-3))
6 -6
"""

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

_active: contextvars.ContextVar[Mapping[str, Sequence[Any]]] = contextvars.ContextVar(
    "replacements", default=MappingProxyType({})
)


def replaceable(function: Callable) -> Any:
    """The function itself, unless a replacement of its name is active and applies to the arguments.

    Replacements get all of the function's arguments, in its order and with its defaults filled in.
    `name` is what replacements refer to (module and function), `plain` the function as it is written.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        replacements = _active.get().get(name, ())
        if replacements:
            # So that `when` sees the same arguments however they were passed, and defaults too.
            given = signature.bind(*arguments, **options)
            given.apply_defaults()
            for replacement in replacements:
                if replacement.when(*given.args, **given.kwargs):
                    return replacement.load()(*given.args, **given.kwargs)
        return function(*arguments, **options)

    call.name, call.plain = name, function  # type: ignore[attr-defined]
    return call


@contextlib.contextmanager
def using(replacements: Mapping[str, Sequence[Any]]) -> Iterator[None]:
    """Make replacements, by the name of what they replace, active in this thread; the first that applies is used.

    JAX traces a compiled function once, so this must enclose the trace: enter it inside the compiled function, and make
    everything that the replacements depend on a static argument of it.
    """
    token = _active.set(replacements)
    try:
        yield
    finally:
        _active.reset(token)
