"""Write docs/results/log-coverage.md from the rows of benchmarks/icu_sepsis.py and benchmarks/log_coverage.py.

python benchmarks/log_coverage_page.py
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent.parent / "docs" / "results"
BEGIN, END = "<!-- {} -->", "<!-- end of {} -->"


def share(values: pd.Series) -> str:
    """A share with its standard error."""
    mean = values.mean()
    return f"{mean:.2f} ± {np.sqrt(mean * (1 - mean) / len(values)):.2f}"


def hospital() -> str:
    """Coverage, width, support and bounds on ICU-Sepsis, beside version 0.1 and the bootstrap."""
    now, before = (pd.read_csv(RESULTS / f"icu-sepsis{name}.csv.gz") for name in ("", "-baseline"))
    lines = [
        "| patients | policy | logs | covered | width | version 0.1 covered | bootstrap covered | its width "
        "| supported | cannot tell | bounds hold the truth | their width |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (patients, policy), rows in now.groupby(["patients", "policy"]):
        told = [json.loads(text) for text in rows.extra.dropna()]
        told = [one for one in told if "bounds" in one]
        limits, cells = [""] * 4, before[(before.patients == patients) & (before.policy == policy)]
        if told:
            low, high = np.array([one["bounds"] for one in told]).T
            truth = rows.truth.iloc[0]
            limits = [
                f"{np.mean([one['supported'] for one in told]):.2f}",
                f"{np.mean(['cannot_tell' in one for one in told]):.0%}",
                f"{np.mean((low <= truth) & (truth <= high)):.0%}",
                f"{np.median(high - low):.2f}",
            ]
        others = []
        for method in ("joint", "bootstrap-model"):
            cell = cells[cells.method == method]
            done = cell[cell.status == "done"]
            others.append((f"{done.covered.sum() / len(cell):.2f}" if len(done) else "no answer",
                           f"{done.width.median():.3g}" if len(done) else ""))  # fmt: skip
        lines.append(
            f"| {patients:,} | {policy} | {len(rows)} | {share(rows.covered)} | {rows.width.median():.3g} | "
            f"{others[0][0]} | {others[1][0]} | {others[1][1]} | {' | '.join(limits)} |"
        )
    return "\n".join(lines)


def environments() -> str:
    """Coverage and width on the other environments, by method."""
    table = pd.read_csv(RESULTS / "log-coverage.csv.gz")
    table["width"] = table.high - table.low
    lines = ["| task | transitions | logs | logged | logged-0.1 | bootstrap | difference to logged-0.1 | cannot tell |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for (task, size), rows in table.groupby(["task", "size"], sort=False):
        cells = {method: cell.set_index("log") for method, cell in rows.groupby("method")}
        gap = cells["logged"].covered - cells["logged-0.1"].covered
        shown = [f"{cells[method].covered.mean():.2f} ({cells[method].width.median():.3g})" for method in
                 ("logged", "logged-0.1", "bootstrap")]  # fmt: skip
        lines.append(
            f"| {task} | {size:,} | {len(gap)} | {' | '.join(shown)} | {gap.mean():+.2f} ± "
            f"{gap.std() / np.sqrt(len(gap)):.2f} | {cells['logged'].told.mean():.0%} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Put both tables into the page."""
    path = RESULTS / "log-coverage.md"
    text = path.read_text()
    for name, table in (("hospital", hospital()), ("environments", environments())):
        begin, end = BEGIN.format(name), END.format(name)
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    path.write_text(text)


if __name__ == "__main__":
    main()
