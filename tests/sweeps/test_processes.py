"""The program as people run it: killed at any moment, interrupted, on a full disk, twice at once."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bellief.errors import UserError
from bellief.sweeps.engines import local
from bellief.sweeps.machine import worker_environment
from bellief.sweeps.spec import build_spec
from bellief.sweeps.sweep import run_sweep
from sweeps.conftest import SOURCE, TINY, contents

pytestmark = pytest.mark.kills

# Three cells; checkpoints after every segment.
STUDY = {"steps": 400, "runs": 30}
OPTIONS = ("--out", "out", "--workers", "1", "--checkpoint-every", "0", "--json")


def events_of(text):
    return [json.loads(line) for line in text.splitlines()]


def processes_of(session):
    """Processes of a session that still run, by number."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def uninterrupted():
    """Filled by the first test that runs the whole study."""
    return {}


@pytest.fixture
def study(program, write_spec, tmp_path, uninterrupted):
    """The description of the study, and the files of the uninterrupted sweep, with the seconds it took."""
    path = write_spec(**STUDY)
    if not uninterrupted:
        began = time.monotonic()
        whole = program.call("sweep", path, *OPTIONS, "--set", "name=whole")
        assert whole.code == 0, whole.err
        uninterrupted.update(files=contents(tmp_path / "out" / "whole"), seconds=time.monotonic() - began)
        assert events_of(whole.out)[-1]["finished"] == 3
        assert len(uninterrupted["files"]) == 9
    return path


def kill_after(process, lines, delay):
    """SIGKILL for the program and everything it started, after so many events and a moment more."""
    for _ in range(lines):
        process.stdout.readline()
    time.sleep(delay)
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return alive


def check_whole(program, folder, uninterrupted):
    finished = program.call("resume", folder, *OPTIONS[2:])
    assert finished.code == 0, finished.err
    assert contents(folder) == uninterrupted["files"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["status"], manifest["finished"]) == ("finished", 3)
    assert not list(folder.glob("lock*"))
    assert not list(folder.rglob("*.part"))


def test_killed_twice(program, study, tmp_path, uninterrupted):
    generator, folder, kills = random.Random(5), tmp_path / "out" / "tiny", 0
    command = ("sweep", study, *OPTIONS)
    for lines in (3, 3):
        kills += kill_after(program.start(*command), lines, generator.uniform(0, 0.1))
        command = ("resume", folder, *OPTIONS[2:])
    assert kills == 2
    assert (folder / "lock.json").exists()  # left behind, and no obstacle
    check_whole(program, folder, uninterrupted)


@pytest.mark.slow
def test_killed_twenty_times(program, study, tmp_path, uninterrupted):
    """After a random number of events, of which none, one and two are the start, and at a random moment after that."""
    generator, folder, kills = random.Random(7), tmp_path / "out" / "tiny", 0
    while kills < 20:
        begun = (folder / "config.yaml").exists()
        command = ("resume", folder, *OPTIONS[2:]) if begun else ("sweep", study, *OPTIONS)
        killed = kill_after(program.start(*command), generator.choice([0, 1, 2, 3, 3, 4, 5]), generator.uniform(0, 0.3))
        kills += killed
        if not killed or kills == 20:  # it came to its end before the moment came: look, and begin anew
            check_whole(program, folder, uninterrupted)
            shutil.rmtree(folder)


def child_processes():
    """Processes that this one has started by multiprocessing."""
    return {process.pid for process in multiprocessing.active_children()}


@pytest.mark.parametrize("times", [1, local.RETRIES])
def test_a_worker_killed_while_it_starts(tmp_path, times):
    """Before it has said anything: another is started, but not for ever."""
    engine, before, killed = local.Local(workers=1), child_processes(), set()

    def kill_new():
        while len(killed) < times:
            for number in child_processes() - before - killed:
                os.kill(number, signal.SIGKILL)
                killed.add(number)

    killer = threading.Thread(target=kill_new)
    killer.start()
    spec = build_spec(TINY | {"runs": 10}, "test")
    if times < local.RETRIES:
        assert run_sweep(spec, tmp_path / "a", engine=lambda: engine).finished == 1
        assert engine.started == times + 1
    else:
        with pytest.raises(UserError, match="cannot start: see with --debug"):
            run_sweep(spec, tmp_path / "a", engine=lambda: engine)
    killer.join(120)
    assert len(killed) == times


@pytest.mark.slow
def test_a_worker_told_to_stop_by_somebody_else(tmp_path):
    engine, kinds = local.Local(workers=1), []

    def listen(event):
        kinds.append(event["kind"])
        if kinds.count("begin") == 1 and event["kind"] == "begin":
            engine.workers[0].signal(signal.SIGTERM)

    spec = build_spec(TINY | {"runs": 20, "steps": 4000}, "test")
    assert run_sweep(spec, tmp_path / "a", engine=lambda: engine, listen=listen).finished == 2
    assert kinds.count("lost") == 1


SCRIPT = """
from bellief.sweeps import run_sweep
from bellief.sweeps.spec import Spec
print("begin")
spec = Spec(name="tiny", steps=60, runs=10, environments=["nchain"], agents=["q-learning"])
print(run_sweep(spec, "out/tiny").finished)
"""


@pytest.mark.slow
def test_a_script_without_a_guard(tmp_path):
    """Worker processes do not run the script that started them again."""
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "script.py"]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert told.stdout.split() == ["begin", "1"], told.stderr


def test_two_at_once_and_workers_that_outlive_nobody(program, study):
    first = program.start("sweep", study, *OPTIONS, "--set", "steps=20000")
    for _ in range(2):
        first.stdout.readline()
    second = program.call("resume", "out/tiny")
    assert second.code == 2
    assert f"is being written by process {first.pid} on" in second.err
    assert second.err.count("\n") == 1
    assert len(processes_of(first.pid)) > 1
    os.kill(first.pid, signal.SIGKILL)  # the program alone
    wait_until(lambda: processes_of(first.pid) == [])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupts_save_and_say_how_to_go_on(program, study, tmp_path, uninterrupted, number):
    process = program.start("sweep", study, *OPTIONS)
    for _ in range(3):
        process.stdout.readline()
    os.killpg(process.pid, number)  # as a terminal and as Slurm do: to all of them
    _, err = process.communicate(timeout=240)
    terminated = number == signal.SIGTERM
    assert process.returncode == (143 if terminated else 130)
    folder = Path("out") / "tiny"
    assert err.splitlines()[-1].startswith("Terminated with " if terminated else "Stopped with ")
    assert f"'bellief resume {folder}'" in err.splitlines()[-1]
    check_whole(program, tmp_path / folder, uninterrupted)


def can_mount():
    """Whether this system lets us make a small disk of our own."""
    if shutil.which("unshare") is None:
        return False
    told = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    return told.returncode == 0


CAN_MOUNT = can_mount()
# Where a real small disk can be had, the pretended one is left to `make test-all`.
_slow_where_mounting_works = pytest.mark.slow if CAN_MOUNT else (lambda test: test)
FULL_DISK = """
mount -t tmpfs -o size={size} none out
"$@"
echo code $?
df --output=avail out | tail -1
find out -name '*.part' | wc -l
mount -o remount,size=64M out
"$@"
echo code $?
cp -r out/tiny copy
"""


@pytest.mark.skipif(not CAN_MOUNT, reason="this system does not let us mount a small disk")
@pytest.mark.parametrize("size", ["112k", pytest.param("80k", marks=pytest.mark.slow)])
def test_a_disk_that_fills(program, study, tmp_path, uninterrupted, size):
    (tmp_path / "out").mkdir(exist_ok=True)
    script = FULL_DISK.format(size=size)
    result = program.call("sweep", study, *OPTIONS, prefix=("unshare", "-rm", "sh", "-c", script, "sh"))
    assert "code 1\n" in result.out
    assert result.out.rstrip().splitlines()[-1] == "code 0"
    first = result.err.splitlines()[0]
    assert first.startswith("The disk of out/tiny is full (No space left on device: ")
    assert "/out/tiny/" in first.partition("device: ")[2]  # the file is named
    assert "make room, then continue with 'bellief resume out/tiny'" in first
    assert result.err.count("\n") == 1
    assert contents(tmp_path / "copy") == uninterrupted["files"]


@_slow_where_mounting_works
def test_a_disk_that_fills_injected(program, study, tmp_path, uninterrupted):
    """The same where nothing can be mounted: from some write on, every write fails, in the workers too."""
    (tmp_path / "fault").mkdir()
    (tmp_path / "fault" / "sitecustomize.py").write_text(
        """
import os
real, count = os.fsync, [0]
def fsync(handle):
    count[0] += 1
    if count[0] > 12:
        raise OSError(28, "No space left on device")
    return real(handle)
os.fsync = fsync
"""
    )
    path = f"{tmp_path / 'fault'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    result = program.call("sweep", study, *OPTIONS, PYTHONPATH=f"{path}{os.pathsep}{SOURCE}")
    assert result.code == 1
    assert result.err.startswith("The disk of out/tiny is full (No space left on device: ")
    assert result.err.count("\n") == 1
    check_whole(program, tmp_path / "out" / "tiny", uninterrupted)


def test_a_folder_without_rights(program, study, tmp_path):
    if os.geteuid() == 0:
        if not CAN_MOUNT:
            pytest.skip("the administrator may write anywhere")
        (tmp_path / "out").mkdir(exist_ok=True)
        script = 'mount -t tmpfs none out && mount -o remount,ro out && "$@"'
        result = program.call("sweep", study, *OPTIONS, prefix=("unshare", "-rm", "sh", "-c", script, "sh"))
        assert result.code in (1, 2)
    else:
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out").chmod(0o500)
        result = program.call("sweep", study, *OPTIONS)
        assert result.code == 2
    assert "out/tiny cannot be read or written" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
def test_workers_are_replaced_and_survive_nothing(tmp_path, monkeypatch, finished):
    """A worker that has compiled enough is replaced; one that is killed has its cell given to another."""
    monkeypatch.setattr(local, "PROGRAMS", 1)
    agents = [{"name": "q-learning", "grid": {"discount": [0.99, 0.9]}}]
    engine, events = local.Local(workers=1), []

    def listen(event):
        events.append(event["kind"])
        if event["kind"] == "begin" and events.count("begin") == 2:
            engine.workers[0].signal(signal.SIGKILL)

    spec = build_spec(TINY | {"agents": agents, "runs": 20}, "test")
    summary = run_sweep(spec, tmp_path / "a", engine=lambda: engine, listen=listen)
    assert (summary.finished, summary.failed) == (4, {})
    assert events.count("lost") == 1
    assert engine.started == 3
    assert engine.workers == []


@pytest.mark.slow
def test_a_cell_lost_while_the_others_are_idle(tmp_path):
    """Of two workers one has nothing left to do when the other is killed."""
    engine, begun = local.Local(workers=2), []

    def listen(event):
        if event["kind"] == "begin":
            begun.append(event["cell"])
        if event["kind"] == "finished" and len(begun) == 2:
            for worker in engine.workers:
                if worker.cell and worker.cell.id != event["cell"]:
                    worker.signal(signal.SIGKILL)

    spec = build_spec(TINY | {"steps": 4000, "agents": ["q-learning", "psrl"], "runs": 10}, "test")
    assert run_sweep(spec, tmp_path / "a", engine=lambda: engine, listen=listen).finished == 2
    assert len(begun) == 3


COUNT_THREADS = """
import pathlib, jax
jax.block_until_ready(jax.jit(lambda x: x @ x)(jax.numpy.ones((99, 99))))
names = [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
print(names.count("tf_XLAEigen"))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="tells threads by Linux's list of them")
def test_a_worker_computes_with_one_thread(monkeypatch):
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    program = [sys.executable, "-c", COUNT_THREADS]
    told = subprocess.run(program, env=os.environ | worker_environment(), capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "1"
