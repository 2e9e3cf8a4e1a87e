"""Results for people (tables) and for programs (one JSON document), on standard output."""

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

LONGEST_TABLE = 20


def print_json(document: Any) -> None:
    """One document, and valid JSON: numbers that JSON does not have are refused."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def print_lines(*lines: str) -> None:
    """Plain text; what looks like markup in it is left alone."""
    from rich.console import Console

    console = Console(soft_wrap=not sys.stdout.isatty())
    for line in lines:
        console.print(line, markup=False, highlight=False)


def print_posterior(document: dict[str, Any], policy: str) -> None:
    """The start value, the value of each state, and what the reader should know."""
    low, high = (f"{(1 + side * document['level']) / 2:.4g}" for side in (-1, 1))
    table = _table("state", "mean", "sd", f"quantile {low}", f"quantile {high}")
    table.add_row("start", *_cells(document["start"], "low", "high"), end_section=True, style="bold")
    rows = document["per_state"]
    for row in rows[:LONGEST_TABLE]:
        table.add_row(str(row["state"]), *_cells(row, "low", "high"))
    print_lines(
        f"Value of policy {policy}, discount {document['discount']:g}, method {document['method']}",
        f"{document['transitions']} transitions, {document['states']} states, {document['actions']} actions",
    )
    _print_table(table)
    if len(rows) > LONGEST_TABLE:
        print_lines(f"and {len(rows) - LONGEST_TABLE} more states (--json shows all)")
    print_lines(*(f"Note: {warning}" for warning in document["diagnostics"]["warnings"]))


def print_run(document: dict[str, Any]) -> None:
    """The three summaries of a run."""
    table = _table("reward per step", "mean", "se", "5%", "95%")
    table.add_row("whole run", *_cells(document["average_reward"], "p05", "p95", spread="se"))
    table.add_row("last tenth", *_cells(document["final_average_reward"], "p05", "p95", spread="se"))
    if document["final_policy_gain"] is not None:
        table.add_row("last policy, exact", *_cells(document["final_policy_gain"], "p05", "p95", spread="se"))
    episodes = document.get("episodes") or {}
    for name, title in (("final_return", "return of an episode"), ("final_length", "steps of an episode")):
        if episodes.get(name) is not None:
            table.add_row(f"{title}, last tenth", *_cells(episodes[name], "p05", "p95", spread="se"))
    runs = "1 run" if document["runs"] == 1 else f"{document['runs']} runs"
    print_lines(f"{document['agent']} in {document['env']}, {runs} of {document['steps']} steps")
    _print_table(table)
    print_lines(f"{document['updates']} plans in each run; {document['seconds']:.1f} seconds")


def print_comparison(document: dict[str, Any]) -> None:
    """One row per agent: final reward, difference to the first agent, chance to beat it, regret."""
    table = _table("agent", "reward, last tenth", "middle half", "difference", "beats it", "regret")
    for entry in document["agents"]:
        names = ("final_average_reward", "interquartile_mean", "difference", "probability_of_improvement", "regret")
        table.add_row(entry["agent"], *(_interval(entry.get(name)) for name in names))
    runs = "1 run" if document["runs"] == 1 else f"{document['runs']} runs"
    print_lines(f"{document['env']}, {runs} of {document['steps']} steps; 95% bootstrap intervals over runs")
    _print_table(table)
    optimum = "" if document["optimum"] is None else f" The best long-run reward per step is {document['optimum']:.5g}."
    print_lines(
        f"Differences are to {document['baseline']}, run by run on the same luck; regret is that of the whole run."
        + optimum
    )


def _interval(estimate: dict[str, float] | None) -> str:
    return "" if estimate is None else f"{estimate['value']:.4g} [{estimate['low']:.4g}, {estimate['high']:.4g}]"


def print_entries(title: str, entries: list[dict[str, str]]) -> None:
    """Names with what they are."""
    rest = [name for name in ("states", "summary") if any(name in entry for entry in entries)]
    table = _table(title, *({"states": "states", "summary": "what it is"}[name] for name in rest))
    for column in table.columns[1:]:
        column.justify = "left"
    for entry in entries:
        table.add_row(entry["name"], *(entry[name] for name in rest))
    _print_table(table)


def write_picture(axes: Any, path: Path) -> None:
    """Save the figure that matplotlib axes belong to, whole or not at all."""
    from bellief.files import write_whole

    content = io.BytesIO()
    axes.figure.savefig(content, format=path.suffix[1:].lower(), bbox_inches="tight")
    write_whole(path, content.getvalue())


def _table(first: str, *others: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _print_table(table: "Table") -> None:
    from rich.console import Console

    Console().print(table)


def _cells(summary: dict[str, float | None], *ends: str, spread: str = "sd") -> list[str]:
    return ["none" if summary[name] is None else f"{summary[name]:.5g}" for name in ("mean", spread, *ends)]
