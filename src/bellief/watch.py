"""How a caller follows a long computation and stops it.

The computation calls `pause_point()` in its outer loops; that costs a microsecond where no caller watches. A caller who
wants to watch wraps the call in `watched`:

>>> import threading
>>> from bellief.watch import Stopped, pause_point, watched
>>> stop = threading.Event()
>>> with watched(stop):
...     pause_point()  # goes on
...     stop.set()
...     try:
...         pause_point()
...     except Stopped:
...         print("stopped")
stopped
"""

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Stopped(Exception):
    """The caller does not want the result any more."""


class _Watcher(NamedTuple):
    stop: threading.Event
    report: Callable[[float], None] | None


_watcher: contextvars.ContextVar[_Watcher | None] = contextvars.ContextVar("watcher", default=None)


@contextlib.contextmanager
def watched(stop: threading.Event, report: Callable[[float], None] | None = None) -> Iterator[None]:
    """Computations in here raise `Stopped` soon after `stop` is set, and tell `report` the finished fraction."""
    token = _watcher.set(_Watcher(stop, report))
    try:
        yield
    finally:
        _watcher.reset(token)


def pause_point(fraction: float | None = None) -> None:
    """A place where the computation may be stopped, and how much of it is done, if that is known."""
    watcher = _watcher.get()
    if watcher is None:
        return
    if watcher.stop.is_set():
        raise Stopped
    if fraction is not None and watcher.report is not None:
        watcher.report(fraction)


def shared_pause_point(parts: int | None = None) -> Callable[[], None]:
    """The same for threads that this one starts, which do not know who watches; to be called before each of `parts`."""
    watcher = _watcher.get()
    if watcher is None:
        return lambda: None
    lock, begun = threading.Lock(), 0

    def point() -> None:
        nonlocal begun
        if watcher.stop.is_set():
            raise Stopped
        if watcher.report is not None and parts:
            with lock:
                watcher.report(begun / parts)
                begun += 1

    return point
