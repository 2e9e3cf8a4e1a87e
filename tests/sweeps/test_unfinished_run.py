"""`bellief run --out`: the folder is reserved at the start; an interrupted run goes on, to the same bytes."""

import contextlib
import json
import os
import shutil
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from bellief import experiments
from bellief.errors import UserError
from bellief.sweeps import unfinished_run
from bellief.sweeps.unfinished_run import finish, reserve

pytestmark = pytest.mark.long

ARGUMENTS = {"env": "nchain", "agent": "psrl-paper", "steps": 300, "runs": 20, "seed": 3}


def files_of(folder):
    """Everything that a run has saved; of the summary without the seconds it took."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found.pop("curve.png", None)
    summary = json.loads(found.pop("result.json"))
    summary.pop("seconds")
    return found | {"result.json": summary}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "whole"
    experiments.run(**ARGUMENTS).save(folder)
    return files_of(folder)


class Interrupted(BaseException):
    pass


def run_into(folder, interrupt=None, every=0.0, arguments=ARGUMENTS):
    """As the command does; `interrupt` is called with the finished fraction."""
    with reserve(folder, arguments, every) as unfinished:
        result = experiments.run(**arguments, checkpoints=unfinished, progress=interrupt)
        finish(folder, result.save)


def interrupt_late(done):
    if done > 0.5:
        raise Interrupted


@pytest.mark.parametrize("fraction", [0.2, 0.99])
def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path, whole, fraction):
    def interrupt(done):
        if done >= fraction:
            raise Interrupted

    with pytest.raises(Interrupted):
        run_into(tmp_path / "a", interrupt)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["checkpoint"]
    begun = list((tmp_path / "a" / "checkpoint").glob("runs-*.npz"))
    assert begun
    run_into(tmp_path / "a")
    assert files_of(tmp_path / "a") == whole
    assert not (tmp_path / "a" / "checkpoint").exists()


def test_batches_that_are_done_are_not_computed_again(tmp_path, whole, monkeypatch):
    """Two batches of ten runs; the first is finished when the run is interrupted."""
    from bellief.experiments import batches

    monkeypatch.setattr(batches, "workers", lambda count, places: 1)

    def interrupt(done):
        if done > 0.6:
            raise Interrupted

    with pytest.raises(Interrupted):
        run_into(tmp_path / "a", interrupt, every=1e9)
    fractions = []
    run_into(tmp_path / "a", fractions.append)
    assert fractions[0] >= 0.5
    assert files_of(tmp_path / "a") == whole


def test_continuous_states_go_on_too(tmp_path):
    arguments = {"env": "pendulum", "agent": "gptd", "steps": 120, "runs": 2, "seed": 0}
    experiments.run(**arguments).save(tmp_path / "whole")
    with pytest.raises(Interrupted):
        run_into(tmp_path / "a", interrupt_late, arguments=arguments)
    run_into(tmp_path / "a", arguments=arguments)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "whole")


@pytest.mark.parametrize(
    ("env", "agent", "settings"),
    [
        ("FrozenLake-v1", "psrl-paper", {}),
        ("FrozenLake-v1", "rlsvi", {"horizon": 10}),
        ("nchain", "rlsvi", {"horizon": 10}),
    ],
)
def test_gymnasium_environments_and_other_schedules_go_on_too(tmp_path, env, agent, settings):
    arguments = {"env": env, "agent": agent, "settings": settings, "steps": 150, "runs": 2, "seed": 0}
    experiments.run(**arguments).save(tmp_path / "whole")
    with pytest.raises(Interrupted):
        run_into(tmp_path / "a", interrupt_late, arguments=arguments)
    run_into(tmp_path / "a", arguments=arguments)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "whole")


def test_a_folder_is_reserved(tmp_path):
    refused = pytest.raises(UserError, match="a is being written by process")
    with reserve(tmp_path / "a", ARGUMENTS), refused, reserve(tmp_path / "a", ARGUMENTS):
        pass
    assert not (tmp_path / "a").exists()
    (tmp_path / "b").mkdir()
    with pytest.raises(UserError, match="exists already"), reserve(tmp_path / "b", ARGUMENTS):
        pass


def test_a_mistake_leaves_no_folder(tmp_path):
    with pytest.raises(UserError, match="has no setting"), reserve(tmp_path / "a" / "b", ARGUMENTS) as unfinished:
        experiments.run("nchain", "psrl-paper", settings={"x": 1}, checkpoints=unfinished)
    assert not (tmp_path / "a" / "b").exists()


def leave_behind(folder, checkpoint):
    with reserve(folder, ARGUMENTS) as unfinished:
        (unfinished.folder / "runs-0-to-9.npz").write_bytes(checkpoint)


def test_an_unfinished_run_is_not_mixed_with_another(tmp_path):
    leave_behind(tmp_path / "a", b"")
    other = ARGUMENTS | {"seed": 4}
    with pytest.raises(UserError, match="unfinished run with another seed"), reserve(tmp_path / "a", other):
        pass
    (tmp_path / "a" / "checkpoint" / "run.json").write_bytes(b"[" * 100_000)
    with pytest.raises(UserError, match="unfinished run with another"), reserve(tmp_path / "a", ARGUMENTS):
        pass


def test_a_damaged_checkpoint_is_left_out(tmp_path, whole):
    leave_behind(tmp_path / "a", b"PK damaged")
    run_into(tmp_path / "a")
    assert files_of(tmp_path / "a") == whole


def test_killed_while_results_are_put_in_place(tmp_path, whole, monkeypatch):
    """The folder has some results and its checkpoints: the same command finishes it."""
    real, moved = os.replace, []

    def replace(source, target):
        if "results" in str(source) and len(moved) == 2:
            raise Interrupted
        moved.append(target)
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(unfinished_run, "os", SimpleNamespace(replace=replace))
        with pytest.raises(Interrupted):
            run_into(tmp_path / "a")
    assert (tmp_path / "a" / "checkpoint").exists()
    run_into(tmp_path / "a")
    assert files_of(tmp_path / "a") == whole


# The program itself


@pytest.fixture(scope="module")
def uninterrupted():
    """The files of the whole run, computed by the first test that needs them."""
    return {}


@pytest.mark.kills
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Term")]
)
def test_the_program_is_interrupted_and_goes_on(program, tmp_path, uninterrupted, number, code, word):
    # So many steps that it is still at work, also on a fast machine, when the second command has been refused.
    command = ("run", "--env", "nchain", "--agent", "psrl-paper", "--steps", "40000000", "--runs", "20", "--quiet")
    process = program.start(*command, "--out", "a")
    while not (tmp_path / "a" / "checkpoint" / "lock.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    second = program.call(*command, "--out", "a")
    assert second.code == 2
    assert "a is being written by process" in second.err
    wait_for_compilation(process)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert err.startswith(word)
    assert "repeat the command to go on" in err
    assert list((tmp_path / "a" / "checkpoint").glob("runs-*.npz"))
    assert program.call(*command, "--out", "a", timeout=600).code == 0
    if not uninterrupted:
        assert program.call(*command, "--out", "b", timeout=600).code == 0
        uninterrupted.update(files_of(tmp_path / "b"))
    assert files_of(tmp_path / "a") == uninterrupted


def wait_for_compilation(process, seconds=240):
    """Until the threads that compute the chunks are there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        names = []
        for path in (f"/proc/{process.pid}/task/{task}/comm" for task in os.listdir(f"/proc/{process.pid}/task")):
            with contextlib.suppress(OSError), open(path) as file:  # a thread may have ended meanwhile
                names.append(file.read())
        with open(f"/proc/{process.pid}/stat") as file:
            used = int(file.read().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")
        # An interrupt while JAX looks for its devices would leave JAX's own timer of a minute behind.
        if len(names) > 8 and used > 3:
            return
        time.sleep(0.05)


@pytest.mark.kills
def test_terminated_without_a_folder(program):
    process = program.start("run", "--env", "nchain", "--agent", "psrl-paper", "--steps", "2000000000", "--quiet")
    wait_for_compilation(process)
    process.terminate()
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (143, "Terminated.\n")


def test_threads(tmp_path):
    """Runs and comparisons from several threads return, with the numbers that they have alone."""
    alone = experiments.run("nchain", "psrl-paper", steps=100, runs=2)
    compared = experiments.compare_agents("nchain", ["q-learning", "psrl-paper"], steps=60, runs=2)
    found = []

    def work(number):
        if number % 2:
            found.append((experiments.run("nchain", "psrl-paper", steps=100, runs=2).total == alone.total).all())
        else:
            again = experiments.compare_agents("nchain", ["q-learning", "psrl-paper"], steps=60, runs=2)
            found.append(again.to_dict()["agents"] == compared.to_dict()["agents"])

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert found == [True] * 4


def test_nothing_else_is_left(tmp_path):
    run_into(tmp_path / "a")
    assert {path.name for path in tmp_path.iterdir()} == {"a"}
    shutil.rmtree(tmp_path / "a")
