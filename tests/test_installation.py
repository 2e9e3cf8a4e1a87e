"""Set-ups that are killed half-way: the next `make` begins again from an empty folder, and what it leaves is whole.

Python and pip are played by a script, so that nothing is downloaded; the Makefile is the real one.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# `python -m venv FOLDER` makes a folder with itself in it; `python -m pip` leaves half of its work, waits there to be
# killed if a file says so, and has installed `bellief` when it is through.
PYTHON = """#!/bin/sh
case "$1 $2" in
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip")
    bin="$(dirname "$0")"
    echo half >"$bin/half"
    if [ -e wait ]; then echo $$ >pip.pid; sleep 60; fi
    printf '#!/bin/sh\\necho demonstration\\n' >"$bin/bellief" && chmod +x "$bin/bellief" ;;
"--version "*) echo Python 3.11 ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    for name in ("Makefile", "pyproject.toml", "requirements"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    if shutil.which("make") is None:
        pytest.skip("there is no make here")

    def start(target):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        command = ["make", f"PYTHON={tmp_path}/python", target]
        return subprocess.Popen(
            command, cwd=tmp_path, env=kept, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    return start


@pytest.mark.parametrize("killed", ["pip", "everything"])
def test_a_killed_set_up_is_made_again(make, tmp_path, killed):
    (tmp_path / "wait").write_text("")
    pip = tmp_path / "pip.pid"
    setting_up = make("demo")
    give_up = time.monotonic() + 120
    while not (pip.exists() and pip.read_text().strip()):
        assert time.monotonic() < give_up, "pip was never begun"
        time.sleep(0.01)
    if killed == "pip":
        os.kill(int(pip.read_text()), signal.SIGKILL)
    else:
        os.killpg(setting_up.pid, signal.SIGKILL)
    setting_up.wait(120)
    with contextlib.suppress(ProcessLookupError):  # the `sleep` that pip had begun
        os.killpg(setting_up.pid, signal.SIGKILL)
    setting_up.communicate(timeout=120)
    assert setting_up.returncode != 0
    assert (tmp_path / ".venv" / "bin" / "half").exists()
    assert not (tmp_path / ".venv" / ".ready").exists()

    (tmp_path / "wait").unlink()
    (tmp_path / ".venv" / "left-behind").write_text("")
    again = make("demo")
    said = again.communicate(timeout=120)[0]
    assert again.returncode == 0
    assert said.splitlines()[-1] == "demonstration"
    assert not (tmp_path / ".venv" / "left-behind").exists()
    assert "Setting up" not in make("demo").communicate(timeout=120)[0]
