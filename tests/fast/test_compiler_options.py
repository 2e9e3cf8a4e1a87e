"""Importing Bellief leaves the process as it is; options are set where they are asked for."""

import os
import subprocess
import sys

from bellief.fast import compiler_options

UNCHANGED = """
import os, sys
before = dict(os.environ)
import bellief
import bellief.experiments
assert dict(os.environ) == before
import jax
assert jax.config.jax_default_matmul_precision is None
"""


def test_importing_changes_nothing_in_the_process():
    done = subprocess.run([sys.executable, "-c", UNCHANGED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_options_are_added_to_those_that_are_set(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    compiler_options.set_process_options()
    flags = os.environ["XLA_FLAGS"].split()
    assert flags == ["--xla_cpu_enable_fast_math=false", f"--xla_backend_extra_options={compiler_options.SMALL_LOOP}"]
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_options_of_the_user_win(monkeypatch):
    own = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1"
    monkeypatch.setenv("XLA_FLAGS", own)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    compiler_options.set_process_options()
    assert (os.environ["XLA_FLAGS"], os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"]) == (own, "true")
