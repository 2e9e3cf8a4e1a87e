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
    """Plain text; markup in it is not interpreted."""
    console = _console(soft_wrap=not sys.stdout.isatty())
    for line in lines:
        console.print(line, markup=False, highlight=False)


def print_posterior(document: dict[str, Any], policy: str) -> None:
    """The start value, the value of each state, and the warnings."""
    from bellief.evaluation.diagnostics import CANNOT_TELL, supported_sentence

    low, high = (f"{(1 + side * document['level']) / 2:.4g}" for side in (-1, 1))
    table = make_table("state", "mean", "sd", f"quantile {low}", f"quantile {high}")
    table.add_row("start", *_cells(document["start"], "low", "high"), end_section=True, style="bold")
    rows = document["per_state"]
    for row in rows[:LONGEST_TABLE]:
        table.add_row(str(row["state"]), *_cells(row, "low", "high"))
    print_lines(
        f"Value of policy {policy}, discount {document['discount']:g}, method {document['method']}",
        f"{document['transitions']} transitions, {_size_of_states(document)}, {document['actions']} actions",
    )
    told = [warning for warning in document["diagnostics"]["warnings"] if warning.startswith(CANNOT_TELL)]
    print_lines(*told)
    print_table(table)
    if len(rows) > LONGEST_TABLE:
        print_lines(f"and {len(rows) - LONGEST_TABLE} more states (--json shows all)")
    if document["monte_carlo_error"] is not None:
        error = document["monte_carlo_error"]
        print_lines(
            f"Monte Carlo error of the start value's mean: {error['mean']:.2g}, of its quantiles: {error['low']:.2g} "
            f"and {error['high']:.2g}."
        )
    if document["diagnostics"].get("supported") is not None and not told:
        print_lines(supported_sentence(document["diagnostics"]))
    print_lines(*(f"Note: {warning}" for warning in document["diagnostics"]["warnings"] if warning not in told))


def _size_of_states(document: dict[str, Any]) -> str:
    names = document["diagnostics"].get("features")
    return f"{document['states']} states" if names is None else f"states of {len(names)} features"


def print_policies(document: dict[str, Any]) -> None:
    """One row per policy, the probabilities pair by pair, and what more data would do."""
    table = make_table("policy", "mean", "low", "high", "is best", "expected regret")
    for row in document["policies"]:
        cells = [f"{row[name]:.5g}" for name in ("mean", "low", "high")]
        style = "bold" if row["policy"] == document["best"] else None
        table.add_row(row["policy"], *cells, f"{row['prob_best']:.1%}", f"{row['expected_regret']:.4g}", style=style)
    print_lines(
        f"Value from the start, discount {document['discount']:g}, {document['level']:.0%} intervals, "
        f"{document['transitions']} transitions"
    )
    print_lines(*(f"{name}: {said}" for name, said in document["cannot_tell"].items()))
    print_table(table)
    names = [row["policy"] for row in document["policies"]]
    if len(names) <= 6:
        pairs = make_table("is worth more than", *names)
        for name, shares in zip(names, document["prob_better"], strict=True):
            pairs.add_row(
                name, *("" if name == other else f"{share:.1%}" for other, share in zip(names, shares, strict=True))
            )
        print_table(pairs)
    print_lines(*document["notes"])
    told = document["cannot_tell"].values()
    notes = [(name, text) for name, texts in document["warnings"].items() for text in texts if text not in told]
    print_lines(*(f"Note on {name}: {text}" for name, text in notes))


def print_improvement(document: dict[str, Any]) -> None:
    """The recommended action of each state, and the probability that the policy is an improvement."""
    from bellief.evaluation.diagnostics import CANNOT_TELL

    table = make_table("state", "action", "usual", "times tried", "value")
    rows = document["policy"]
    for row in rows[:LONGEST_TABLE]:
        cells = (row["action"], row["usual_action"] or "", str(row["visits_of_action"]), f"{row['value']:.5g}")
        table.add_row(row["state"], *cells)
    start, warnings = document["posterior"]["start"], document["posterior"]["diagnostics"]["warnings"]
    told = [warning for warning in warnings if warning.startswith(CANNOT_TELL)]
    print_lines(
        *told,
        f"Policy that maximises the {document['objective']} of the value posterior",
        f"It is worth {start['mean']:.5g} from the start ({start['low']:.5g} to {start['high']:.5g}), and more than "
        f"what the log did with probability {document['prob_better_than_behaviour']:.1%}.",
    )
    print_table(table)
    if len(rows) > LONGEST_TABLE:
        print_lines(f"and {len(rows) - LONGEST_TABLE} more states (--json shows all)")
    print_lines(*(f"Note: {warning}" for warning in warnings if warning not in told))


def print_collection(document: dict[str, Any], policy: str) -> None:
    """The ranking of pairs."""
    table = make_table("state", "action", "seen", "visits by the policy", "variance removed", "share")
    for row in document["pairs"]:
        infinite = row["variance_reduction"] is None
        table.add_row(
            str(row["state"]),
            str(row["action"]),
            str(row["seen"]),
            f"{row['discounted_visits']:.4g}",
            "infinite" if infinite else f"{row['variance_reduction']:.4g}",
            "" if row["share"] is None else f"{row['share']:.2%}",
        )
    times = "one more visit" if document["visits"] == 1 else f"{document['visits']} more visits"
    print_lines(f"What {times} of a state-action pair would tell about the value of policy {policy}")
    print_table(table)
    if document["sd"] is not None:
        print_lines(f"The start value's standard deviation is {document['sd']:.4g} now.")


def print_rows(columns: list[str], rows: list[list[Any]]) -> None:
    """A plain table: texts as they are, numbers to four figures."""
    table = make_table(*columns)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, str) else "none" if cell is None else f"{cell:.4g}" for cell in row))
    print_table(table)


def print_run(document: dict[str, Any]) -> None:
    """The three summaries of a run."""
    table = make_table("reward per step", "mean", "se", "5%", "95%")
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
    print_table(table)
    schedule = document["settings"].get("schedule", "triangular")
    own = "" if schedule == "triangular" else f" reported, made on the schedule '{schedule}'"
    print_lines(f"{document['updates']} plans in each run{own}; {document['seconds']:.1f} seconds")


def print_comparison(document: dict[str, Any]) -> None:
    """One row per agent: final reward, difference to the first agent, chance to beat it, regret."""
    table = make_table("agent", "reward, last tenth", "middle half", "difference", "beats it", "regret")
    for entry in document["agents"]:
        names = ("final_average_reward", "interquartile_mean", "difference", "probability_of_improvement", "regret")
        table.add_row(entry["agent"], *(_interval(entry.get(name)) for name in names))
    runs = "1 run" if document["runs"] == 1 else f"{document['runs']} runs"
    print_lines(f"{document['env']}, {runs} of {document['steps']} steps; 95% bootstrap intervals over runs")
    print_table(table)
    optimum = "" if document["optimum"] is None else f" The best long-run reward per step is {document['optimum']:.5g}."
    print_lines(
        f"Differences are to {document['baseline']}, run by run, with the same random numbers; regret: whole run."
        + optimum
    )


def _interval(estimate: dict[str, float] | None) -> str:
    return "" if estimate is None else f"{estimate['value']:.4g} [{estimate['low']:.4g}, {estimate['high']:.4g}]"


def print_entries(title: str, entries: list[dict[str, str]]) -> None:
    """Names with what they are."""
    rest = [name for name in ("states", "summary") if any(name in entry for entry in entries)]
    table = make_table(title, *({"states": "states", "summary": "what it is"}[name] for name in rest), left=3)
    for entry in entries:
        table.add_row(entry["name"], *(entry[name] for name in rest))
    print_table(table)


def write_picture(axes: Any, path: Path) -> None:
    """Save the figure that matplotlib axes belong to, whole or not at all."""
    from bellief.files import write_whole

    content = io.BytesIO()
    axes.figure.savefig(content, format=path.suffix[1:].lower(), bbox_inches="tight")
    write_whole(path, content.getvalue())


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours} h {rest // 60} min {rest % 60} s"


def make_table(*names: str, left: int = 1) -> "Table":
    """An empty table; all columns but the first `left` are aligned to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(names):
        table.add_column(name, justify="left" if place < left else "right")
    return table


def print_table(table: "Table") -> None:
    """Show a table."""
    _console().print(table)


def _console(**options: Any) -> Any:
    from rich.console import Console

    return Console(**options)


def _cells(summary: dict[str, float | None], *ends: str, spread: str = "sd") -> list[str]:
    return ["none" if summary[name] is None else f"{summary[name]:.5g}" for name in ("mean", spread, *ends)]
