"""The documentation: links lead somewhere; every block of Python and every `bellief` command runs, and prints what the
page shows below it (tools/doc_outputs.py).

Large numbers are made small before a block runs (`SMALLER`); everything else is run as it is printed. Shell lines that
are no `bellief` command must be among those that are run elsewhere (`OTHER_LINES`).
"""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from bellief.cli import main

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("doc_outputs", ROOT / "tools" / "doc_outputs.py")
doc_outputs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(doc_outputs)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts and "generated" not in page.parts]

# Pages whose code has a test of its own: (file of the test).
ELSEWHERE = {"own-data.md": "tests/test_tutorials.py", "add-an-agent.md": "tests/contracts/test_plugins.py"}
NO_OUTPUT = ("add-an-agent.md",)
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


def left_out(arguments):
    """`bellief app` runs until it is interrupted: tests/app."""
    return arguments[0] == "app" or arguments in WHOLE or any(part in " ".join(arguments) for part in LEFT_OUT)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python", "sh", "bash")], ids=name_of)
def test_examples_run(page, tmp_path, monkeypatch, capsys):
    if page.name in ELSEWHERE:
        assert page.name in (ROOT / ELSEWHERE[page.name]).read_text() or (ROOT / ELSEWHERE[page.name]).exists()
        return
    import matplotlib.pyplot as plt

    import bellief
    from bellief.agents import rules
    from bellief.induction import method1

    # A page may add to these.
    monkeypatch.setattr(rules, "RULES", dict(rules.RULES))
    monkeypatch.setattr(method1, "BELIEFS", dict(method1.BELIEFS))
    monkeypatch.chdir(tmp_path)
    doc_outputs.write_files(page.read_text(), tmp_path)
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text())
    for number, block in enumerate(blocks(page, "yaml")):
        (tmp_path / ("sweep.yaml" if number == 0 else f"other{number}.yaml")).write_text(smaller(block))
    if not (tmp_path / "sweep.yaml").exists():
        (tmp_path / "sweep.yaml").write_text(
            "name: chains\nsteps: 20\nruns: 1\nenvironments: [nchain]\nagents: [psrl]\n"
        )
    names = {"bellief": bellief, "data": bellief.Transitions.from_csv("log.csv"), "policy": "uniform"}
    as_printed = True
    for block in doc_outputs.blocks_of(page.read_text()):
        as_printed &= smaller(block.code) == block.code
        output = doc_outputs.run_block(block, names, smaller, left_out)
        if block.output is not None:
            differs = doc_outputs.difference(block.output, output, numbers=as_printed)
            assert differs is None, f"{differs}\nRegenerate: python tools/doc_outputs.py {name_of(page)}"
    plt.close("all")


@pytest.mark.parametrize(
    ("found", "numbers", "same"),
    [
        ("mean 3.01 of 7\n", True, True),
        ("mean 4.00 of 7\n", True, False),
        ("mean 4.00 of 7\n", False, True),
        ("median 3.00 of 7\n", False, False),
        ("mean 3.00 of 7\nand more\n", True, False),
    ],
)
def test_outputs_are_compared(found, numbers, same):
    assert (doc_outputs.difference("mean 3.00 of 7\n", found, numbers) is None) == same


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_that_prints_has_its_output_below(page):
    for block in doc_outputs.blocks_of(page.read_text()):
        if page.name in NO_OUTPUT or block.language != "python" or not re.search(r"^print\(", block.code, re.M):
            continue
        assert block.output, f"{name_of(page)} shows no output of\n{block.code}"
