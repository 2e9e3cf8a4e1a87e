"""Write docs/results/log-coverage.md from the rows of icu_sepsis.py, log_coverage.py and logged_calibration.py here.

Every table of the page, and every sentence that names cells of one, is made here; the rest of the page stays as it is.

    python benchmarks/log_coverage_page.py
"""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from log_coverage import SIZES

RESULTS = Path(__file__).parent.parent / "docs" / "results"
LEVELS = (0.5, 0.8, 0.9, 0.95)
BEGIN, END = "<!-- {} -->", "<!-- end of {} -->"

# What was asked on ICU-Sepsis, by the number of patients: least coverage and largest median width.
LEAST_COVERED = {300: 0.80, 2_000: 0.85, 18_000: 0.85}
WIDEST = {300: 0.25, 2_000: 0.12, 18_000: 0.03}
# As wide as this many of the bootstrap's intervals, where those hold the truth as often as this.
BOOTSTRAP_TIMES, BOOTSTRAP_COVERED = 1.5, 0.85
# Of a policy that the log hardly tells of: `supported` below the one, bounds that hold the truth as often as the other.
LEAST_SUPPORTED, BOUNDS_HOLD, OPTIMAL_COVERED, MOST_TOLD = 0.6, 0.95, 0.8, 0.05
# Below the other method by at most this, beyond the paired error.
ALLOWED, NOMINAL, WEAK = 0.03, 0.90, 0.85
CALIBRATED, LEAST_P = (0.87, 0.93), 1e-3


def share(values: pd.Series) -> str:
    """A share with its standard error."""
    mean = values.mean()
    return f"{mean:.2f} ± {np.sqrt(mean * (1 - mean) / len(values)):.2f}"


def yes(truth: Any) -> str:
    """Whether something was reached."""
    return "yes" if truth else "**no**"


def hospital_cells() -> pd.DataFrame:
    """Coverage, width, support and bounds on ICU-Sepsis, beside version 0.1 and the bootstrap; a row a cell."""
    now, before = (pd.read_csv(RESULTS / f"icu-sepsis{name}.csv.gz") for name in ("", "-baseline"))
    found = []
    for (patients, policy), rows in now.groupby(["patients", "policy"]):
        cell: dict[str, Any] = {"patients": patients, "policy": policy, "logs": len(rows)}
        answered = rows[rows.status == "done"]
        cell |= {"covered": answered.covered.sum() / len(rows), "width": answered.width.median()}
        told = [json.loads(text) for text in answered.extra]
        low, high = np.array([one["bounds"] for one in told]).T
        cell |= {
            "supported": np.mean([one["supported"] for one in told]),
            "told": np.mean(["cannot_tell" in one for one in told]),
            "bounds_hold": np.mean((low <= answered.truth) & (answered.truth <= high)),
            "bounds_width": np.median(high - low),
        }
        for name, method in (("old", "joint"), ("bootstrap", "bootstrap-model")):
            other = before[(before.patients == patients) & (before.policy == policy) & (before.method == method)]
            done = other[other.status == "done"]
            # An answer in hardly any log is none.
            held = done.covered.sum() / len(other) if len(done) > len(other) / 2 else np.nan
            cell |= {f"{name}_covered": held, f"{name}_width": done.width.median()}
        found.append(cell)
    return pd.DataFrame(found)


def hospital() -> str:
    """The table of ICU-Sepsis."""
    lines = [
        "| patients | policy | logs | covered | width | version 0.1 covered | bootstrap covered | its width "
        "| supported | cannot tell | bounds hold the truth | their width |",
        "|" + "---|" * 12,
    ]
    for cell in hospital_cells().itertuples():
        error = np.sqrt(cell.covered * (1 - cell.covered) / cell.logs)
        old = "no answer" if np.isnan(cell.old_covered) else f"{cell.old_covered:.2f}"
        lines.append(
            f"| {cell.patients:,} | {cell.policy} | {cell.logs} | {cell.covered:.2f} ± {error:.2f} | {cell.width:.3g} "
            f"| {old} | {cell.bootstrap_covered:.2f} | {cell.bootstrap_width:.3g} | {cell.supported:.2f} "
            f"| {cell.told:.0%} | {cell.bounds_hold:.0%} | {cell.bounds_width:.2f} |"
        )
    return "\n".join(lines)


def environment_cells() -> pd.DataFrame:
    """Coverage and width on the other environments, by method, and what is lost against `logged-0.1`; a row a cell."""
    table, found = pd.read_csv(RESULTS / "log-coverage.csv.gz"), []
    table["width"] = table.high - table.low
    for (task, size), rows in table.groupby(["task", "size"], sort=False):
        every = rows.groupby("log").method.transform("nunique") == rows.method.nunique()
        cells = {method: cell.set_index("log") for method, cell in rows[every].groupby("method")}
        gap = cells["logged"].covered - cells["logged-0.1"].covered
        cell: dict[str, Any] = {"task": task, "size": size, "logs": len(gap)}
        for method, one in cells.items():
            cell |= {f"{method} covered": one.covered.mean(), f"{method} width": one.width.median()}
        cell |= {"gap": gap.mean(), "error": gap.std() / np.sqrt(len(gap)), "told": cells["logged"].told.mean()}
        cell["lost"] = min(cell["logged-0.1 covered"], NOMINAL) - cell["logged covered"]
        found.append(cell)
    order = [*SIZES]
    return pd.DataFrame(sorted(found, key=lambda cell: order.index(cell["task"])))


def environments() -> str:
    """The table of the other environments."""
    lines = ["| task | transitions | logs | logged | logged-0.1 | bootstrap | difference to logged-0.1 | cannot tell |",
             "|" + "---|" * 8]  # fmt: skip
    for _, cell in environment_cells().iterrows():
        shown = [f"{cell[f'{method} covered']:.2f} ({cell[f'{method} width']:.3g})" for method in
                 ("logged", "logged-0.1", "bootstrap")]  # fmt: skip
        lines.append(
            f"| {cell.task} | {cell['size']:,} | {cell.logs} | {' | '.join(shown)} | {cell.gap:+.2f} ± "
            f"{cell.error:.2f} | {cell.told:.0%} |"
        )
    return "\n".join(lines)


def listed(cells: pd.DataFrame, what: str) -> str:
    """Cells of the environments in a sentence."""
    named = (f"{cell.task} with {cell['size']:,} ({cell[what]:.2f})" for _, cell in cells.iterrows())
    return ", ".join(named) or "none"


def weak_cells() -> str:
    """Cells below 0.85, and those that lose most."""
    cells = environment_cells()
    worst = cells.loc[cells.lost.idxmax()]
    return (
        f"Below {WEAK}: {listed(cells[cells['logged covered'] < WEAK], 'logged covered')}.\n\n"
        f"The largest loss against version 0.1, or against {NOMINAL:.2f} where that is less, is {worst.task}'s with "
        f"{worst['size']:,} steps: {worst['lost']:.2f}, with a paired error of {worst.error:.2f}."
    )


def calibration() -> str:
    """Coverage in problems drawn from the prior's own model."""
    lines = [
        "| problem | simulations | known: 50% | 80% | 90% | 95% | uniform ranks, p | from the log: 50% | 80% | 90% "
        "| 95% | width of 90%, known | from the log | refused, known | from the log |",
        "|" + "---|" * 15,
    ]
    for row in pd.read_csv(RESULTS / "logged-calibration.csv").sort_values("size").to_dict("records"):
        known, estimated = (
            " | ".join(f"{row[f'{kind}_{level}']:.3f}" for level in LEVELS) for kind in ("known", "estimated")
        )
        lines.append(
            f"| {problem(row)} | {row['simulations']:,} | {known} | {row['uniform_ranks_p']:.2g} | {estimated} | "
            f"{row['known_width_0.9']:.3g} | {row['estimated_width_0.9']:.3g} | {row['known_refused']:.0%} | "
            f"{row['estimated_refused']:.0%} |"
        )
    return "\n".join(lines)


def problem(row: dict[str, Any]) -> str:
    """A size in words."""
    name = f"{row['states']} states, {row['actions']} actions, {row['transitions']:,} transitions"
    ends = row["ends"] if "ends" in row else row["terminates"]
    return name + f", discount {row['discount']:g}" + (", episodes end" if ends else "")


def answered() -> str:
    """Logs with ends and discount 1 that are answered: coverage by what the policy's episodes last in truth."""
    table = pd.read_csv(RESULTS / "logged-calibration-ends.csv")
    lines = ["| episodes in truth last | from the log: answered | held | everything known: answered | held |",
             "|" + "---|" * 5]  # fmt: skip
    edges = [0, 10, 50, 1_000, np.inf]
    for low, high in [*itertools.pairwise(edges), (0, np.inf)]:
        rows = table[(table.length > low) & (table.length <= high)]
        name = f"{low:,} to {high:,} steps" if high < np.inf else f"more than {low:,}" if low else "all"
        cells = []
        for belief in ("estimated", "known"):
            own = rows[rows[f"{belief}_answers"] == 1]
            cells.append(f"{len(own)} of {len(rows)} | {share(own[f'{belief}_covered'])}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def other_worlds() -> str:
    """Coverage in worlds of version 0.1's model."""
    lines = [
        "| worlds of version 0.1 | simulations | logged | logged-0.1 | width, logged | logged-0.1 |",
        "|" + "---|" * 6,
    ]
    for row in pd.read_csv(RESULTS / "logged-calibration-other.csv").sort_values("size").to_dict("records"):
        lines.append(
            f"| {problem(row)} | {row['simulations']:,} | {row['logged_0.9']:.3f} | {row['logged-0.1_0.9']:.3f} | "
            f"{row['logged_width_0.9']:.3g} | {row['logged-0.1_width_0.9']:.3g} |"
        )
    return "\n".join(lines)


def goals() -> str:
    """What was asked before anything was measured, what was found, and whether that is enough."""
    return "\n".join(
        [
            "| asked | found | reached |",
            "|---|---|---|",
            *(f"| {asked} | {found} | {yes(reached)} |" for asked, found, reached in
              [*hospital_goals(), *environment_goals(), *calibration_goals()]),
        ]
    )  # fmt: skip


def hospital_goals() -> list[tuple[str, str, bool]]:
    """Goals on ICU-Sepsis; figures are those of 300, 2,000 and 18,000 patients."""
    cells = hospital_cells().set_index(["policy", "patients"])
    found = [("ICU-Sepsis: 100 logs a size or more (of the policy with the fewest)",
              each(cells.logs.groupby("patients").min(), "{:.0f}"),
              bool((cells.logs >= 100).all()))]  # fmt: skip
    for policy in ("clinicians", "half"):
        ours = cells.loc[policy]
        least = pd.Series(LEAST_COVERED)
        found.append((f"{policy}: covered at least {each(least, '{:.2f}')}", each(ours.covered, "{:.2f}"),
                      bool((ours.covered >= least).all())))  # fmt: skip
        ratio = (ours.width / ours.bootstrap_width)[ours.bootstrap_covered >= BOOTSTRAP_COVERED]
        found.append((f"{policy}: width at most {BOOTSTRAP_TIMES} times the bootstrap's, where that covers at least "
                      f"{BOOTSTRAP_COVERED}", each(ratio, "{:.2f}"),
                      bool((ratio <= BOOTSTRAP_TIMES).all())))  # fmt: skip
        widest = pd.Series(WIDEST)
        found.append((f"{policy}: width at most {each(widest, '{:.2f}')}", each(ours.width, "{:.3f}"),
                      bool((ours.width <= widest).all())))  # fmt: skip
    best = cells.loc["optimal"]
    held = (best.covered >= OPTIMAL_COVERED) | (
        (best.supported < LEAST_SUPPORTED) & (best.told == 1) & (best.bounds_hold >= BOUNDS_HOLD)
    )
    found.append((f"optimal: covered at least {OPTIMAL_COVERED}, or `supported` below {LEAST_SUPPORTED} and bounds "
                  f"that hold the truth in {BOUNDS_HOLD:.0%}",
                  f"covered {each(best.covered, '{:.2f}')}; supported {each(best.supported, '{:.2f}')}; bounds "
                  f"{each(best.bounds_hold, '{:.0%}')}", bool(held.all())))  # fmt: skip
    told = cells.loc[("clinicians", 18_000)].told
    found.append((f"clinicians, 18,000: 'cannot tell' in at most {MOST_TOLD:.0%}", f"{told:.0%}", told <= MOST_TOLD))
    return found


def environment_goals() -> list[tuple[str, str, bool]]:
    """Coverage on the environments beside version 0.1's."""
    cells = environment_cells()
    lost = cells[cells.lost > ALLOWED + cells.error]
    named = f"{len(cells) - len(lost)} of {len(cells)} cells"
    if len(lost):
        named += f"; not {listed(lost, 'lost')}"
    few = cells[cells.logs < 100]
    return [
        (f"environments: covered no less than version 0.1 or {NOMINAL:.2f} by more than {ALLOWED} and the paired error",
         named, len(lost) == 0),
        ("environments: 100 logs a cell", "all" if few.empty else f"all but {few.task.iloc[0]}: {few.logs.min()}",
         few.empty),
    ]  # fmt: skip


def calibration_goals() -> list[tuple[str, str, bool]]:
    """Calibration at the six sizes."""
    rows = pd.read_csv(RESULTS / "logged-calibration.csv").sort_values("size").head(6)
    low, high = CALIBRATED
    held = rows["estimated_0.9"].between(low, high)
    return [
        (f"six sizes, everything known: p of uniform ranks above {LEAST_P:g}", f"{rows.uniform_ranks_p.min():.2g} or "
         "more", bool((rows.uniform_ranks_p > LEAST_P).all())),
        (f"six sizes, from the log: 90% intervals hold {low} to {high}",
         ", ".join(f"{value:.3f}" for value in rows["estimated_0.9"]), bool(held.all())),
    ]  # fmt: skip


def each(values: pd.Series, form: str) -> str:
    """Values one after the other."""
    return " / ".join(form.format(value) for value in values)


def main() -> None:
    """Put the tables into the page."""
    path = RESULTS / "log-coverage.md"
    text = path.read_text()
    for make in (goals, hospital, environments, weak_cells, calibration, answered, other_worlds):
        begin, end = BEGIN.format(make.__name__), END.format(make.__name__)
        head, found, rest = text.partition(begin)
        if not found or end not in rest:
            raise SystemExit(f"{path} has no place for {make.__name__}.")
        text = f"{head}{begin}\n{make()}\n{end}{rest.partition(end)[2]}"
    path.write_text(text)


if __name__ == "__main__":
    main()
