"""Module names of version 0.1: each still gives its present module, and says so once."""

import subprocess
import sys

CODE = """
import importlib, warnings
from bellief.former_modules import FORMER_MODULES
for former, present in FORMER_MODULES.items():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        old = importlib.import_module(former)
        assert importlib.import_module(former) is old
    assert old is importlib.import_module(present) and old.__spec__.name == present, former
    assert [f"{former} is now {present};" in str(notice.message) for notice in said].count(True) == 1, (former, said)
try:
    import bellief.mdp.nothing_of_this_name
except ModuleNotFoundError:
    print(len(FORMER_MODULES))
"""


def test_former_modules_are_the_present_ones():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 11
