"""BLAS is limited while somebody solves in threads, and as before afterwards."""

import os
import subprocess
import sys

PROGRAM = """
import threading
import numpy as np
from threadpoolctl import threadpool_info
from bellief.evaluation.blas import one_thread

def threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

np.linalg.solve(np.eye(2), np.ones(2))
before = threads()
entered, leave = threading.Event(), threading.Event()

def user():
    with one_thread():
        entered.set()
        leave.wait(60)

other = threading.Thread(target=user)
other.start()
assert entered.wait(60)
with one_thread():
    assert set(threads()) == {1}, threads()
assert set(threads()) == {1}, "the other one is still at it"
leave.set()
other.join(60)
assert threads() == before, (threads(), before)
"""


def test_the_limit_holds_for_the_last_of_several_users():
    """In a process of its own, whose libraries no other test has loaded or limited."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}  # one to begin with would leave nothing to limit
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
