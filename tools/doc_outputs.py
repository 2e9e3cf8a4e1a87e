"""Runs the code of documentation pages and writes what it prints below it, in blocks called `output`.

    python tools/doc_outputs.py README.md docs/quickstart.md
    python tools/doc_outputs.py --check docs/quickstart.md       # say which pages differ, write nothing

Blocks of Python and `bellief` commands of a page run in order, in an empty folder. tests/test_docs.py runs them too, and
compares: words exactly, numbers within `TOLERANCE` where a block runs at the size that is printed.
"""

import argparse
import contextlib
import importlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"^```(?P<language>python|sh|bash)\n(?P<code>.*?)^```\n(?:\n```output\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
# Longer outputs are cut. Commands that need another machine or the network, never end or say something about one machine.
MOST_LINES, WIDTH = 18, "96"
NOT_RUN = ("app", "--address", "--engine ray", "--shard", "doctor", "--dry-run", "paper --scale", "--readme")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# Rounding differs between processors and compilers, and with it, now and then, the path of a run.
TOLERANCE = 0.05


class Block(NamedTuple):
    """A block of code and the output below it, if there is one."""

    language: str
    code: str
    output: str | None
    span: tuple[int, int]


def blocks_of(text: str) -> list[Block]:
    """Python and shell blocks in order."""
    return [Block(found["language"], found["code"], found["output"], found.span()) for found in BLOCK.finditer(text)]


def commands(code: str) -> list[list[str]]:
    """Arguments of the `bellief` commands of a shell block."""
    return [shlex.split(line, comments=True)[1:] for line in code.splitlines() if line.startswith("bellief ")]


def is_left_out(arguments: list[str]) -> bool:
    """Whether a command is not run here."""
    return any(part in " ".join(arguments) for part in NOT_RUN)


@contextlib.contextmanager
def terminal() -> Iterator[io.StringIO]:
    """Standard output as a string, as wide as the pages have room for."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    stream = io.StringIO()
    try:
        with contextlib.redirect_stdout(stream):  # what is said on standard error is not shown
            yield stream
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


def run_block(
    block: Block,
    names: dict[str, Any],
    smaller: Callable[[str], str] = str,
    left_out: Callable[[list[str]], bool] = is_left_out,
) -> str:
    """What a block prints. `smaller` may change sizes before it runs."""
    code = smaller(block.code)
    with terminal() as stream:
        if block.language == "python":
            exec(compile(code, "a block of the documentation", "exec"), names)
        else:
            from bellief.cli import main

            for arguments in commands(code):
                if not left_out(arguments) and (status := main(arguments)):
                    raise RuntimeError(f"exit code {status}: bellief {' '.join(arguments)}")
    return _tidy(stream.getvalue())


def _tidy(text: str) -> str:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    lines = [line for line, before in zip(lines, ["x", *lines], strict=False) if line or before]
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def cut(output: str) -> str:
    """The part of an output that is shown."""
    lines = output.splitlines(keepends=True)
    return output if len(lines) <= MOST_LINES else "".join(lines[: MOST_LINES - 2]) + "...\n"


def difference(shown: str, found: str, numbers: bool) -> str | None:
    """How an output differs from the one that a page shows, or None. `numbers`: compare these too."""
    shown_lines, found_lines = shown.splitlines(), found.splitlines()
    if shown_lines and shown_lines[-1] == "...":
        shown_lines = shown_lines[:-1]
        found_lines = found_lines[: len(shown_lines)]
    if not numbers:
        shown_lines, found_lines = shown_lines[:1], found_lines[:1]
    if len(shown_lines) != len(found_lines):
        return f"{len(found_lines)} lines instead of {len(shown_lines)}:\n{found}"
    for one, other in zip(shown_lines, found_lines, strict=True):
        if _words(one, numbers) != _words(other, numbers) or (numbers and not _close(one, other)):
            return f"found: {other}\nshown: {one}"
    return None


def _words(line: str, numbers: bool) -> list[str]:
    words = re.sub(r"[─━]+", "─", NUMBER.sub("#", _untimed(line)))
    # A smaller block has fewer runs, and lists of fewer numbers.
    return (words if numbers else re.sub(r"#(\s+#)+", "#", words)).split()


def _close(one: str, other: str) -> bool:
    pairs = zip(_numbers(one), _numbers(other), strict=True)
    return all(abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) + 0.05 for a, b in pairs)


def _numbers(line: str) -> list[float]:
    return [float(text.replace(",", "")) for text in NUMBER.findall(_untimed(line))]


def _untimed(line: str) -> str:
    return re.sub(r"[\d.]+ seconds", "some seconds", line)


def write_files(text: str, folder: Path) -> None:
    """The files that code of a page may read."""
    if "examples/clinic_log.py log.csv" in text:
        clinic_log().write(folder / "log.csv")
    else:
        write_log(folder / "log.csv")
    write_plant(folder)
    policy = "state,action,probability\n" + "".join(f"{state},1,1\n" for state in range(5))
    (folder / "new.csv").write_text(policy)


def clinic_log() -> Any:
    """examples/clinic_log.py, which a tutorial imports."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        return importlib.import_module("clinic_log")
    finally:
        sys.path.pop(0)


def write_log(path: Path) -> None:
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


def write_plant(folder: Path) -> None:
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


def with_outputs(text: str) -> str:
    """A page with the outputs of its code, run in the present folder."""
    import bellief

    write_files(text, Path())
    for number, code in enumerate(re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)):
        Path("sweep.yaml" if number == 0 else f"other{number}.yaml").write_text(code)
    names: dict[str, Any] = {"bellief": bellief}
    parts, end = [], 0
    for block in blocks_of(text):
        several = len(commands(block.code)) > 1  # these show what there is, not what it prints
        output = "" if several else cut(run_block(block, names))
        below = f"\n```output\n{output}```\n" if output else ""
        parts += [text[end : block.span[0]], f"```{block.language}\n{block.code}```\n{below}"]
        end = block.span[1]
    return "".join([*parts, text[end:]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    different = 0
    for page in [path.resolve() for path in options.pages]:
        text, home = page.read_text(), Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                new = with_outputs(text)
            finally:
                os.chdir(home)
        if new != text:
            different += 1
            print(f"{page.name}: {'differs' if options.check else 'written'}")
            if not options.check:
                page.write_text(new)
    return int(options.check and different > 0)


if __name__ == "__main__":
    sys.exit(main())
