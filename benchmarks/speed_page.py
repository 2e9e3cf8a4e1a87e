"""Writes docs/results/speed.md from docs/results/speed.json: what was to be shown, and whether it was.

python benchmarks/speed_page.py
"""

import json
import statistics
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"

# What is wanted: workload, who, divided by whom, at least (or at most) how much, in words.
ONE, MANY = "Bellief, one run", "Bellief, per run of 50"
GOALS = [
    ("psrl 100000", "rlberry 0.6", ONE, ">=", 10, "PSRL, 10^5 steps, one run: rlberry 0.6 / ours"),
    ("psrl 100000", "textbook NumPy", ONE, ">=", 10, "the same: textbook NumPy / ours"),
    ("psrl 100000", "rlberry 0.6", MANY, ">=", 20, "PSRL, per run of 50: rlberry 0.6 / ours"),
    ("psrl 100000", "textbook NumPy", MANY, ">=", 20, "the same: textbook NumPy / ours"),
    ("mmbi 100000", "textbook NumPy", ONE, ">=", 15, "MMBI, 10^5 steps, one run: textbook NumPy / ours"),
    ("mmbi 100000", "textbook NumPy", MANY, ">=", 15, "MMBI, per run of 50: textbook NumPy / ours"),
    *(
        (f"posterior {states}", peer, "Bellief", ">=", 1, f"1,000-MDP posterior, S = {states}: {peer} / ours")
        for states in (5, 100, 264)
        for peer in ("NumPy loop", "quantecon", "pymdptoolbox")
    ),
    ("bbi update 5", "Bellief", "Bellief, no weights", "<=", 4, "BBI update, S = 5: with weights / without"),
    ("bbi update 5", "Bellief", "Numba", "<=", 2, "BBI update, S = 5: ours / Numba"),
    ("bbi update 264", "Bellief", "floor", "<=", 2, "BBI update, S = 264: ours / its matrix products alone"),
]
OTHERS = [
    ("bbi update 35", "Bellief", "Numba", "BBI update, S = 35: ours / Numba"),
    ("bbi update 100", "Bellief", "Numba", "BBI update, S = 100: ours / Numba"),
    ("bbi update 264", "Bellief", "Numba", "BBI update, S = 264: ours / Numba"),
    ("bbi update 5", "Bellief, no weights", "Numba, no weights", "BBI update without weights, S = 5: ours / Numba"),
    ("dirichlet 264", "NumPy", "Bellief", "Dirichlet rows 10 x 264 x 4 x 264: NumPy / ours"),
    ("stepping 1000000", "plain class", "Bellief, with beliefs", "10^6 NChain steps: plain class / ours with beliefs"),
    ("stepping 1000000", "NumPy, 50 runs", "Bellief, with beliefs", "the same: NumPy over 50 runs / ours"),
    ("stepping 1000000", "Numba", "Bellief, with beliefs", "the same: Numba without beliefs / ours"),
    ("offline 1000000", "NumPy", "Bellief", "Evaluation from 10^6 transitions, 1,000 MDPs: NumPy / ours"),
]


def ratio(seconds: dict, workload: str, one: str, other: str) -> list[float] | None:
    """One's time over the other's, for each repetition."""
    times = seconds.get(workload, {})
    if one not in times or other not in times:
        return None
    return [first / second for first, second in zip(times[one], times[other], strict=True)]


def written(found: list[float] | None) -> str:
    if found is None:
        return "not measured"
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def goals(seconds: dict) -> list[str]:
    lines = ["| what | wanted | found: median (range) | reached |", "|---|---|---|---|"]
    for workload, one, other, sign, bound, words in GOALS:
        found = ratio(seconds, workload, one, other)
        if found is None:
            verdict = "not measured"
        else:
            middle = statistics.median(found)
            verdict = "yes" if (middle >= bound if sign == ">=" else middle <= bound) else "**no**"
        wanted = "at least" if sign == ">=" else "at most"
        lines.append(f"| {words} | {wanted} {bound} | {written(found)} | {verdict} |")
    return lines


def others(seconds: dict) -> list[str]:
    lines = ["| what | median (range) |", "|---|---|"]
    for workload, one, other, words in OTHERS:
        lines.append(f"| {words} | {written(ratio(seconds, workload, one, other))} |")
    for workload, name, words in (
        ("start", "bellief --help", "`bellief --help`, seconds"),
        *(
            (
                "first use",
                f"bellief run, {agent}, {kept}",
                f"`bellief run --agent {agent} --steps 1000`, a new process, {kept}, seconds",
            )
            for agent in ("psrl", "bbi")
            for kept in ("nothing cached", "filled cache")
        ),
        ("full_chain quick 10000", "Bellief", "fig:full_chain quick (50 runs x 10^4, paper mode), seconds"),
        ("demo", "bellief demo", "`bellief demo`, start to finish, nothing kept, seconds"),
    ):
        lines.append(f"| {words} | {written(seconds.get(workload, {}).get(name))} |")
    return lines


def scaling() -> list[str]:
    path = RESULTS / "scaling.json"
    if not path.exists():
        return []
    said = "One BBI update of 20 steps, otherwise of NChain's size, and evaluation of a log (`benchmarks/scaling.py`)."
    lines = ["## Growth", "", said, "", "![Time and memory against size](../images/scaling.png)", ""]
    lines += ["| axis | sizes | seconds | time grows as | MiB | memory grows as |", "|---|---|---|---|---|---|"]
    for axis, line in json.loads(path.read_text()).items():
        times, memory = (", ".join(f"{value:.3g}" for value in line[kind]) for kind in ("seconds", "MiB"))
        sizes = ", ".join(f"{size:,}" for size in line["sizes"])
        powers = [f"size^{line[kind]}" for kind in ("time_exponent", "memory_exponent")]
        lines.append(f"| {axis} | {sizes} | {times} | {powers[0]} | {memory} | {powers[1]} |")
    return lines


def curves() -> list[str]:
    document = json.loads((RESULTS / "gpu.json").read_text())
    lines = ["| curve | seconds | of these compiling the plan | GiB on the host | reward, last half (standard error) |"]
    lines.append("|---|---|---|---|---|")
    for name, one in document["curves"].items():
        compiling = "plans on the host" if one["plans_on"] == "cpu" else one["compiling"]
        alone = "" if one["alone"] else ", others beside it"
        reward = f"{one['reward'][0]} ({one['reward'][1]})"
        lines.append(f"| {name} | {one['seconds']}{alone} | {compiling} | {one['gibibytes']} | {reward} |")
    return lines


def agreement() -> list[str]:
    lines = ["| agent | runs that earn the same | values of plans differ by at most |", "|---|---|---|"]
    for name, one in json.loads((RESULTS / "agreement.json").read_text()).items():
        apart = "not reported" if one["values_apart"] is None else f"{100 * one['values_apart']:.2g}%"
        lines.append(f"| {name} | {one['same_runs']:.0%} | {apart} |")
    return lines


def main() -> None:
    """Fill the page's template."""
    document = json.loads((RESULTS / "speed.json").read_text())
    template = Path(__file__).with_name("speed").joinpath("page.md").read_text()
    load = max(document["about"]["load"])
    page = template.format(
        date=document["about"]["date"],
        cores=document["about"]["cores"],
        load=f"{load:.0f}",
        repeats=max(len(times) for one in document["seconds"].values() for times in one.values()),
        goals="\n".join(goals(document["seconds"])),
        others="\n".join(others(document["seconds"])),
        curves="\n".join(curves()),
        agreement="\n".join(agreement()),
        scaling="\n".join(scaling()),
    )
    (RESULTS / "speed.md").write_text(page.rstrip() + "\n")


if __name__ == "__main__":
    main()
