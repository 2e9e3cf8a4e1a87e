"""The documentation: links lead somewhere, and every block of Python and every `bellief` command runs.

Large numbers are made small before a block runs (`SMALLER`); everything else is run as it is printed.
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
}
# What needs another machine, or the network, or only says something about this one.
LEFT_OUT = ("--address", "--engine ray", "--shard", "doctor", "sweep sweep.yaml --dry-run")


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


def commands(page):
    lines = [line for block in blocks(page, "sh", "bash") for line in block.splitlines()]
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
    for number, block in enumerate(blocks(page, "yaml")):
        (tmp_path / ("sweep.yaml" if number == 0 else f"other{number}.yaml")).write_text(smaller(block))
    if not (tmp_path / "sweep.yaml").exists():
        (tmp_path / "sweep.yaml").write_text(
            "name: chains\nsteps: 20\nruns: 1\nenvironments: [nchain]\nagents: [psrl]\n"
        )
    for arguments in commands(page):
        if not any(part in " ".join(arguments) for part in LEFT_OUT):
            assert main(arguments) == 0, (arguments, capsys.readouterr().err)
    names = {"bellief": bellief, "data": bellief.Transitions.from_csv("log.csv"), "policy": "uniform"}
    for block in blocks(page, "python"):
        exec(compile(smaller(block), name_of(page), "exec"), names)
    plt.close("all")
