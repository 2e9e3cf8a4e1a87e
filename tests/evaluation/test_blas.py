"""BLAS is limited while somebody solves in threads, and as before afterwards."""

import threading

import numpy as np
from threadpoolctl import threadpool_info

from bellief.evaluation.blas import one_thread


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_the_limit_holds_for_the_last_of_several_users():
    np.linalg.solve(np.eye(2), np.ones(2))
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def user():
        with one_thread():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=user)
    other.start()
    assert entered.wait(10)
    with one_thread():
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {1}  # the other one is still at it
    leave.set()
    other.join(10)
    assert blas_threads() == before
