"""Write docs/results/log-coverage.md from the rows of icu_sepsis.py, log_coverage.py and logged_calibration.py here.

python benchmarks/log_coverage_page.py
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent.parent / "docs" / "results"
LEVELS = (0.5, 0.8, 0.9, 0.95)
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
        every = rows.groupby("log").method.transform("nunique") == rows.method.nunique()
        cells = {method: cell.set_index("log") for method, cell in rows[every].groupby("method")}
        gap = cells["logged"].covered - cells["logged-0.1"].covered
        shown = [f"{cells[method].covered.mean():.2f} ({cells[method].width.median():.3g})" for method in
                 ("logged", "logged-0.1", "bootstrap")]  # fmt: skip
        lines.append(
            f"| {task} | {size:,} | {len(gap)} | {' | '.join(shown)} | {gap.mean():+.2f} ± "
            f"{gap.std() / np.sqrt(len(gap)):.2f} | {cells['logged'].told.mean():.0%} |"
        )
    return "\n".join(lines)


def calibration() -> str:
    """Coverage in problems drawn from the prior's own model."""
    lines = [
        "| problem | simulations | known: 50% | 80% | 90% | 95% | uniform ranks, p | from the log: 50% | 80% | 90% "
        "| 95% | width of 90%, known | from the log |",
        "|" + "---|" * 13,
    ]
    for row in pd.read_csv(RESULTS / "logged-calibration.csv").sort_values("size").to_dict("records"):
        name = f"{row['states']} states, {row['actions']} actions, {row['transitions']:,} transitions"
        name += f", discount {row['discount']:g}" + (", episodes end" if row["ends"] else "")
        known, estimated = (
            " | ".join(f"{row[f'{kind}_{level}']:.3f}" for level in LEVELS) for kind in ("known", "estimated")
        )
        lines.append(
            f"| {name} | {row['simulations']:,} | {known} | {row['uniform_ranks_p']:.2g} | {estimated} | "
            f"{row['known_width_0.9']:.3g} | {row['estimated_width_0.9']:.3g} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Put the tables into the page."""
    path = RESULTS / "log-coverage.md"
    text = path.read_text()
    for name, table in (
        ("hospital", hospital()),
        ("environments", environments()),
        ("calibration", calibration()),
    ):
        begin, end = BEGIN.format(name), END.format(name)
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    path.write_text(text)


if __name__ == "__main__":
    main()
