"""Options that the commands about logged data share."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bellief.cli.failures import OptionError
from bellief.cli.options import accuracy, between, count, names_or_number, page, scale

if TYPE_CHECKING:
    from bellief.logs import Origin


def _note_belief(name: str | None) -> None:
    if name is not None:
        print(
            "--belief has no effect any more, because one belief serves logs of any size: leave it out.",
            file=sys.stderr,
        )


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="CSV, Parquet or JSON-lines files (a path, a glob, a folder; also .gz and .zst), a file that `bellief "
        "tally` wrote, minari:NAME, example:NAME, or - for standard input. Columns: state, action, reward, next_state; "
        "optionally terminated, truncated, episode, step. For evaluate, states may be vectors: columns state_NAME and "
        "next_state_NAME.",
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="uniform, behaviour (as seen in the data), always:ACTION, or a CSV file with state, action, probability.",
    ),
]
Discount = Annotated[
    float,
    typer.Option(
        parser=between("--discount", 0, 1, includes_high=True),
        metavar="NUMBER",
        help="In (0, 1]; 1 needs a horizon, or episodes that end.",
    ),
]
PriorName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Prior over MDPs: logged (in the units of the log; logged:0.5 with rows that weigh half an "
        "observation), logged-0.1 (the default of version 0.1), paper or sparse.",
    ),
]
RewardScale = Annotated[
    Any,
    typer.Option(
        parser=scale,
        metavar="NUMBER|data",
        help="For the priors paper and sparse: the reward that counts as one unit (data: the root mean square of the "
        "log's rewards; default 1). The default prior takes its scale from the log and refuses this option.",
    ),
]
Level = Annotated[
    float,
    typer.Option(parser=between("--level", 0, 1), metavar="NUMBER", help="Probability mass of the credible intervals."),
]
Horizon = Annotated[int | None, count("--horizon", "Horizon in steps; without it, infinite.")]
States = Annotated[
    Any,
    typer.Option(
        parser=names_or_number("--states"), metavar="N|A,B,...", help="Number of states, or all their labels."
    ),
]
Actions = Annotated[
    Any,
    typer.Option(
        parser=names_or_number("--actions"),
        metavar="N|A,B,...",
        help="Number of actions, or all their labels.",
    ),
]
Labels = Annotated[
    bool, typer.Option("--labels", help="Read states and actions as strings even where they are numbers.")
]
Start = Annotated[str | None, typer.Option(metavar="STATE", help="First state; by default those of the data.")]
Draws = Annotated[int, count("--draws", "Value functions to draw.")]
Accuracy = Annotated[
    float | None,
    typer.Option(
        parser=accuracy,
        metavar="NUMBER",
        help="Instead of --draws: draw until the error of interval limits is this share of the interval's width.",
    ),
]
Belief = Annotated[
    str | None,
    typer.Option(metavar="NAME", hidden=True, callback=_note_belief, help="Has no effect any more."),
]
RewardRange = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="The smallest and the largest possible reward."),
]
Support = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="CSV file with the possible state, next_state (and action)."),
]
FeatureMap = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Where states are vectors: a feature map such as constant+raw+rbf:4."),
]
Report = Annotated[
    Path | None,
    typer.Option(
        parser=page("--report"), metavar="FILE", help="Write a page into an .html file (replaced if it exists)."
    ),
]
Query = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="Instead of DATA (or with DATA given as -): a SELECT over files that it names, or over --database.",
    ),
]
Database = Annotated[
    str | None, typer.Option(metavar="FILE", help="DuckDB file whose tables --query reads; it is not changed.")
]
Engine = Annotated[str, typer.Option(metavar="NAME", help="Where the log is read: local or ray.")]
Address = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Ray cluster; by default one is started on this machine.")
]
Threads = Annotated[int | None, count("--threads", "Threads that read; by default one for each processor.")]


def _roles(text: Any) -> Mapping[str, str]:
    """`state=obs,action=a` as a dictionary."""
    if not isinstance(text, str):
        return text
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(role.strip() and column.strip() for role, _, column in pairs):
        raise OptionError(f"--columns must be ROLE=COLUMN,..., such as state=obs,next_state=obs2, not '{text}'.")
    return {role.strip(): column.strip() for role, _, column in pairs}


ColumnNames = Annotated[
    Any,
    typer.Option(
        parser=_roles,
        metavar="ROLE=COLUMN,...",
        help="Columns whose names are not the usual ones, such as state=obs,reward=gain. Roles: state, action, reward, "
        "next_state, terminated, done, truncated, episode, step.",
    ),
]


def taken_lines(origin: "Origin") -> list[str]:
    """Which column was read as which role, one line each, for people."""
    lines = [f"{role}: column '{column}'" for role, column in origin.columns.items()]
    return lines + ([] if "terminated" in origin.columns or "done" in origin.columns else ["terminated: never"])
