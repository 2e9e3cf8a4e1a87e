"""The documentation: links lead somewhere, and every block of Python and every `bellief` command runs.

Large numbers are made small before a block runs (`SMALLER`); everything else is run as it is printed. Shell
lines that are no `bellief` command must be among those that are run elsewhere (`OTHER_LINES`).
"""

import re
import shlex
from pathlib import Path

import pytest

from bellief.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts and "generated" not in page.parts]

# Pages whose code has a test of its own: (file of the test).
ELSEWHERE = {"own-data.md": "tests/test_tutorials.py", "add-an-agent.md": "tests/contracts/test_plugins.py"}
SMALLER = {
    r"20_000|20000\b|\b5000\b": "60",
    r"runs=10\b": "runs=2",
    r"--runs (10|20|5)\b": "--runs 2",
    r"runs: 20": "runs: 2",
    r"steps=500, runs=6": "steps=60, runs=2",
    r"--steps 500 --runs 6": "--steps 60 --runs 2",
    r"--agent bbi *#": "--agent bbi --steps 40 --runs 1 #",
    r"--states 20 --transitions 400": "--states 3 --transitions 50 --simulations 40",
    r"horizon: \[50, 100\]": "horizon: [5]",
    r"bss, steps: 1000": "bss, steps: 5",
    r"steps=300, runs=1": "steps=20, runs=1",
    r"--steps [23]000\b": "--steps 60",
    r"--features 3 --transitions 500": "--features 2 --transitions 60 --simulations 20",
    r"--scale (quick|full)": "--scale tiny",
    r"(paper --only \S+)": r"\1 --scale tiny",
}
# What needs another machine, or the network, or only says something about this one; `.ci/run` runs all of the paper.
LEFT_OUT = ("--address", "--engine ray", "--shard", "doctor", "--dry-run")
WHOLE = (["paper", "--scale", "tiny"],)
# Other lines, and who runs them.
OTHER_LINES = {
    r"make (demo|test) ": ".ci/run",
    r"pip install ": ".ci/run, tools/newcomer; extras need the network",
    r"(\.venv/bin/)?python -m pytest ": "the tests themselves",
    r"python examples/clinic_log.py log.csv|head -4 log.csv": "tests/test_tutorials.py",
    r"#|srun ": "Slurm",
}


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(page, *languages):
    pattern = rf"^```(?:{'|'.join(languages)})\n(.*?)^```"
    return re.findall(pattern, page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{name_of(page)} points to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{name_of(page)} points to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_python_and_commands_exist(page, capsys):
    for block in blocks(page, "python"):
        compile(block, name_of(page), "exec")
    for line in commands(page):
        main(["--help"])
        known = capsys.readouterr().out
        assert re.search(rf"\b{re.escape(line[0])}\b", known) or line[0].startswith("-"), line


def shell_lines(page):
    return [line for block in blocks(page, "sh", "bash", "console") for line in block.splitlines() if line.strip()]


def test_no_line_of_shell_is_left_unrun():
    others = [line for page in PAGES for line in shell_lines(page) if not line.startswith("bellief ")]
    assert [line for line in others if not any(re.match(pattern, line) for pattern in OTHER_LINES)] == []
    checks = (ROOT / ".ci" / "run").read_text()
    assert "make test" in checks
    assert "make demo" in checks


def commands(page):
    lines = shell_lines(page)
    return [shlex.split(smaller(line), comments=True)[1:] for line in lines if line.startswith("bellief ")]


def smaller(text):
    for pattern, instead in SMALLER.items():
        text = re.sub(pattern, instead, text)
    return text


def write_log(path):
    """A walk on NChain, which the examples that mix a log with a learned policy mean."""
    import numpy as np

    generator, rows, state = np.random.default_rng(0), ["state,action,reward,next_state"], 0
    for _ in range(120):
        action = int(generator.integers(2))
        forward = (action == 1) != (generator.random() < 0.2)
        after, reward = (min(state + 1, 4), 10 * (state == 4)) if forward else (0, 2)
        rows.append(f"{state},{action},{reward},{after}")
        state = after
    path.write_text("\n".join(rows) + "\n")


def write_plant(folder):
    """A log of vectors, and a policy for it."""
    import numpy as np

    generator = np.random.default_rng(0)
    states, actions = np.cumsum(0.1 * generator.normal(size=(61, 2)), axis=0), generator.integers(0, 2, 60)
    rows = [
        f"{a},{b},{action},{-a * a},{c},{d}"
        for (a, b), action, (c, d) in zip(states, actions, states[1:], strict=False)
    ]
    head = "state_heat,state_flow,action,reward,next_state_heat,next_state_flow"
    (folder / "plant.csv").write_text("\n".join([head, *rows]) + "\n")
    (folder / "weights.csv").write_text("action,constant,heat,flow\n0,0,1,0\n1,0,-1,0\n")


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python", "sh", "bash")], ids=name_of)
def test_examples_run(page, tmp_path, monkeypatch, capsys):
    if page.name in ELSEWHERE:
        assert page.name in (ROOT / ELSEWHERE[page.name]).read_text() or (ROOT / ELSEWHERE[page.name]).exists()
        return
    import matplotlib.pyplot as plt

    import bellief

    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "log.csv")
    policy = "state,action,probability\n" + "".join(f"{state},1,1\n" for state in range(5))
    (tmp_path / "new.csv").write_text(policy)
    write_plant(tmp_path)
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text())
    for number, block in enumerate(blocks(page, "yaml")):
        (tmp_path / ("sweep.yaml" if number == 0 else f"other{number}.yaml")).write_text(smaller(block))
    if not (tmp_path / "sweep.yaml").exists():
        (tmp_path / "sweep.yaml").write_text(
            "name: chains\nsteps: 20\nruns: 1\nenvironments: [nchain]\nagents: [psrl]\n"
        )
    for arguments in commands(page):
        if arguments[0] == "app":  # runs until it is interrupted: tests/app
            continue
        if arguments not in WHOLE and not any(part in " ".join(arguments) for part in LEFT_OUT):
            assert main(arguments) == 0, (arguments, capsys.readouterr().err)
    names = {"bellief": bellief, "data": bellief.Transitions.from_csv("log.csv"), "policy": "uniform"}
    for block in blocks(page, "python"):
        exec(compile(smaller(block), name_of(page), "exec"), names)
    plt.close("all")
