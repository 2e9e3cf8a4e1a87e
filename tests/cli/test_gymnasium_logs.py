"""Every command about logs, on logs of Gymnasium's discrete environments in the forms in which people keep them."""

import functools
import json
import sys

import gymnasium
import numpy as np
import pytest

from bellief.cli import main

pytestmark = pytest.mark.long

ENVIRONMENTS = ("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "Taxi-v4")
COMMANDS = {
    "evaluate": ["--policy", "behaviour", "--draws", "50"],
    "compare": ["behaviour", "uniform", "--draws", "50"],
    "improve": ["--draws", "50", "--mdps", "5"],
    "collect": ["--policy", "behaviour", "--draws", "20"],
    "sensitivity": ["--policy", "behaviour", "--draws", "20"],
    "check": ["--permutations", "99"],
    "tally": [],
}
FORMS = ("plain", "no ends", "labels", "gaps")


@functools.cache
def steps(name, count=300):
    """Random play; columns of the log."""
    env, rng, log = gymnasium.make(name), np.random.default_rng(0), []
    for episode in range(count):
        state, done = int(env.reset(seed=episode)[0]), False
        while not done and len(log) < count:
            action = int(rng.integers(env.action_space.n))
            after, reward, terminated, truncated, _ = env.step(action)
            log.append((state, action, float(reward), int(after), terminated, episode))
            state, done = int(after), terminated or truncated
    return log


def not_json(word):
    raise AssertionError(f"JSON has no {word}")


def write(path, name, form):
    lines = ["state,action,reward,next_state,terminated,episode"]
    for state, action, reward, after, ended, episode in steps(name):
        cells = [state, action, reward, after, int(ended), episode]
        if form == "labels":
            cells[0], cells[1], cells[3] = f"place {state}", f"move {action}", f"place {after}"
        if form == "gaps":
            cells[0], cells[3] = 3 * state + 2, 3 * after + 2
        lines.append(",".join(map(str, cells)))
    if form == "no ends":
        lines = [",".join(np.delete(line.split(","), 4)) for line in lines]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, marks=() if name == "FrozenLake-v1" or form == "plain" else pytest.mark.slow)
        for name in ENVIRONMENTS
        for form in FORMS
    ],
)
def test_every_command(tmp_path, capsys, name, form):
    """Exit code 0, as text and as JSON without a number that JSON does not have."""
    write(tmp_path / "log.csv", name, form)
    few = form != "plain" or name != "FrozenLake-v1"
    for command, options in COMMANDS.items():
        if few and command == "sensitivity":  # eight evaluations
            continue
        if few and command == "improve":  # its search evaluates dozens of policies in each MDP
            options = ["--draws", "50", "--mdps", "2"]
        for more in ([], ["--json"]) if command != "improve" or not few else (["--json"],):
            code = main([command, str(tmp_path / "log.csv"), *options, "--quiet", *more])
            out, err = capsys.readouterr()
            assert code == 0, (command, err)
            if more:
                json.loads(out, parse_constant=not_json)


def test_no_command_about_logs_imports_jax(tmp_path):
    """In a new process: the answer must not wait for what it does not need."""
    import subprocess

    write(tmp_path / "log.csv", "FrozenLake-v1", "plain")
    for command, options in COMMANDS.items():
        code = (
            "import sys; from bellief.cli import main; "
            f"code = main({[command, str(tmp_path / 'log.csv'), *options, '--quiet']!r}); "
            "print([name for name in ('jax', 'pandas', 'matplotlib') if name in sys.modules], file=sys.stderr); "
            "sys.exit(code)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        loaded = done.stderr.splitlines()[-1]
        assert "jax" not in loaded, command
        assert "matplotlib" not in loaded, command
        if command in ("evaluate", "compare", "sensitivity", "tally"):
            assert "pandas" not in loaded, command
