"""Report pages for logged data: the numbers of `evaluate`, `compare`, `improve` and `collect_next`, and what they mean.

Every page is one HTML file that loads nothing. Labels come from the user's data; the template escapes them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bellief.decisions import CollectionPlan, Improvement, PolicyComparison
from bellief.evaluation.posterior import ValuePosterior
from bellief.files import write_whole
from bellief.plots.decisions import plot_collection, plot_forecasts, plot_policies
from bellief.plots.style import number, percent
from bellief.plots.value_pictures import plot_posterior
from bellief.report.build import embed, render
from bellief.report.document import Document, Picture, Section, Table

MOST_ROWS = 100


def write_report(result: Any, path: Path, command: str, version: str) -> Path:
    """Write the page of any of the four results."""
    builders: dict[type, Callable[..., Document]] = {
        ValuePosterior: posterior_page,
        PolicyComparison: comparison_page,
        Improvement: improvement_page,
        CollectionPlan: collection_page,
    }
    page = builders[type(result)](result, f"Made by Bellief {version}: {command}")
    return write_whole(path, render(page).encode())


def posterior_page(posterior: ValuePosterior, footer: str = "") -> Document:
    """What one policy is worth."""
    start = posterior.start_summary()
    lead = (
        f"The policy is worth {number(start['mean'])} from the start, and with {posterior.level:.0%} probability "
        f"between {number(start['low'])} and {number(start['high'])}, given {posterior.transitions:,} transitions and "
        f"discount {posterior.discount:g}."
    )
    return Document(
        "What the policy is worth",
        [*_told(posterior), lead],
        [],
        [_posterior_section(posterior), _caveats(posterior)],
        footer=footer,
    )


def _posterior_section(posterior: ValuePosterior, title: str = "Value by state") -> Section:
    rows = posterior.to_dict()["per_state"]
    table = Table(
        caption="Value of each state",
        columns=["state", "mean", "sd", f"{posterior.level:.0%} from", "to"],
        rows=[[str(row["state"]), *(number(row[name]) for name in ("mean", "sd", "low", "high"))] for row in rows][
            :MOST_ROWS
        ],
        notes=_cut(len(rows), "states"),
    )
    start = posterior.start_summary()
    picture = Picture(
        address=embed(plot_posterior(posterior).figure),
        alt=f"Posterior density of the value; start value {number(start['mean'])}, from {number(start['low'])} "
        f"to {number(start['high'])}.",
        title=f"Posterior density, each scaled to the same height; shaded: the {posterior.level:.0%} interval.",
    )
    return Section("", title, [], [picture, table])


def _told(posterior: ValuePosterior) -> list[str]:
    """The warning that the log does not determine the value, where there is one."""
    return [] if posterior.cannot_tell is None else [posterior.cannot_tell]


def _caveats(posterior: ValuePosterior) -> Section:
    return Section("", "How far to trust this", posterior.explain() or ["Nothing stands out."], [])


def comparison_page(comparison: PolicyComparison, footer: str = "") -> Document:
    """Which policy is the best."""
    document = comparison.to_dict()
    chance = comparison.prob_best[comparison.names.index(comparison.best)]
    lead = (
        f"{comparison.best} has the highest expected value; it is the best of {len(comparison.names)} policies with "
        f"probability {percent(chance)}, given {comparison.transitions:,} transitions and discount "
        f"{comparison.discount:g}."
    )
    sections = [_policies_section(comparison, document), _pairwise(comparison)]
    title = "How much more data would settle it?"
    if comparison.forecasts:
        picture = Picture(
            address=embed(plot_forecasts(comparison).figure),
            alt="Chance of choosing the best policy against the number of further transitions.",
            title="By simulation: worlds are drawn from the posterior, produce further data as the log was made, and "
            "the choice is made anew. Bars: one standard error over worlds.",
        )
        sections.append(Section("", title, list(comparison.notes), [picture]))
    elif comparison.notes:
        sections.append(Section("", title, list(comparison.notes), []))
    known = comparison.cannot_tell.values()
    said = [(name, text) for name, texts in comparison.warnings.items() for text in texts if text not in known]
    warnings = [f"{name}: {text}" for name, text in said]
    if warnings:
        sections.append(Section("", "How far to trust this", warnings, []))
    told = [f"{name}: {said}" for name, said in comparison.cannot_tell.items()]
    return Document("Policies compared", [*told, lead], [], sections, footer=footer)


def _policies_section(comparison: PolicyComparison, document: dict[str, Any]) -> Section:
    rows = [
        [
            row["policy"],
            *(number(row[name]) for name in ("mean", "low", "high")),
            percent(row["prob_best"]),
            number(row["expected_regret"]),
        ]
        for row in document["policies"]
    ]
    table = Table(
        caption="Value from the start",
        columns=["policy", "mean", f"{comparison.level:.0%} from", "to", "is best", "expected regret"],
        rows=rows,
        notes=["Expected regret: what choosing the policy costs on average, against whichever is really the best."],
    )
    picture = Picture(
        address=embed(plot_policies(comparison).figure),
        alt=f"Densities of the policies' values; {comparison.best} has the highest mean.",
        title="All policies are valued in the same sampled worlds, so that what they share cancels in comparisons.",
    )
    return Section("", "What each is worth", [], [picture, table])


def _pairwise(comparison: PolicyComparison) -> Section:
    rows = [
        [name, *("" if first == second else percent(share) for second, share in enumerate(shares))]
        for first, (name, shares) in enumerate(zip(comparison.names, comparison.prob_better, strict=True))
    ]
    table = Table("Probability that the row's policy is worth more than the column's", ["", *comparison.names], rows)
    return Section("", "Pair by pair", [], [table])


def improvement_page(improvement: Improvement, footer: str = "") -> Document:
    """What the posterior recommends."""
    goals = {
        "mean": "the expected value",
        "quantile": f"the value exceeded with probability {1 - improvement.tail:.0%}",
        "cvar": f"the mean of the worst {improvement.tail:.0%} of the posterior",
    }
    lead = (
        f"The policy below maximises {goals[improvement.objective]}; it is worth more than what the log did with "
        f"probability {percent(improvement.prob_better)}."
    )
    frame = improvement.to_pandas().reset_index()
    rows = [
        [row.state, row.action, row.usual_action or "–", f"{row.visits_of_action:,}", f"{row.visits_of_state:,}",
         number(row.value)]
        for row in frame.head(MOST_ROWS).itertuples()
    ]  # fmt: skip
    table = Table(
        caption="The policy",
        columns=["state", "action", "most usual in the log", "times tried", "times in state", "value"],
        rows=rows,
        notes=[
            *_cut(len(frame), "states"),
            f"Chosen in one set of sampled worlds ({number(improvement.objective_value)} there) and judged in another "
            f"({number(improvement.judged_value)}); the second number is the honest one.",
        ],
    )
    comparison = improvement.comparison
    picture = Picture(
        address=embed(plot_policies(comparison).figure),
        alt="Densities of the value of the improved policy and of what the log did.",
        title="Both valued in the same sampled worlds.",
    )
    sections = [Section("", "What to do", [], [picture, table]), _caveats(improvement.posterior)]
    return Document("A better policy", [*_told(improvement.posterior), lead], [], sections, footer=footer)


def collection_page(plan: CollectionPlan, footer: str = "") -> Document:
    """What to observe next."""
    pairs: Sequence[dict[str, Any]] = plan.to_dict(MOST_ROWS)["pairs"]
    first = pairs[0]
    lead = (
        f"To learn the most about the policy's value, observe what happens in state {first['state']} after action "
        f"{first['action']}, seen {first['seen']:,} times so far."
    )
    rows = [
        [
            str(pair["state"]),
            str(pair["action"]),
            f"{pair['seen']:,}",
            number(pair["discounted_visits"]),
            number(pair["variance_reduction"]),
            "all that is infinite" if pair["variance_reduction"] is None else percent(pair["share"] or 0.0),
        ]
        for pair in pairs
    ]
    table = Table(
        caption=f"Expected effect of {plan.visits:,} more visits",
        columns=["state", "action", "seen", "visits by the policy", "variance removed", "share"],
        rows=rows,
        notes=["Visits by the policy: expected and discounted. Shares are to first order and may exceed what is left."],
    )
    picture = Picture(
        address=embed(plot_collection(plan).figure),
        alt="The most telling state-action pairs as bars.",
        title="Pairs that the policy never uses are left out.",
    )
    return Document(
        "What to collect next", [lead], [], [Section("", "The ranking", [], [picture, table])], footer=footer
    )


def _cut(count: int, what: str) -> list[str]:
    return [f"And {count - MOST_ROWS:,} more {what}."] if count > MOST_ROWS else []
