"""One thread for BLAS where several threads of this process solve at once: with more they wait for one another."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.Lock()
_users = 0
_limits: Any = None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within it BLAS computes in the calling thread; the last of several users restores the former number.

    >>> from bellief.evaluation.blas import one_thread
    >>> with one_thread():
    ...     pass
    """
    global _users, _limits
    with _lock:
        _users += 1
        if _users == 1:
            _limits = _limit()
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


def _limit() -> Any:
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # a bare machine computes as it is set
        return None
    return threadpool_limits(1, user_api="blas")
