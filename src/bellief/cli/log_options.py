"""Options that the commands about logged data share."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bellief.cli.options import between, count, names_or_number, page, scale


def _note_belief(name: str | None) -> None:
    if name is not None:
        print(
            "--belief has no effect any more, because one belief serves logs of any size: leave it out.",
            file=sys.stderr,
        )


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="CSV or Parquet file with state, action, reward, next_state; optionally terminated, truncated, episode. "
        "Or minari:NAME. For evaluate, states may be vectors: columns state_NAME and next_state_NAME.",
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
        parser=between("--discount", 0, 1, includes_high=True), metavar="NUMBER", help="In (0, 1]; 1 needs an end."
    ),
]
PriorName = Annotated[
    str, typer.Option(metavar="NAME", help="Prior over MDPs: logged (in the units of the log), paper or sparse.")
]
RewardScale = Annotated[
    Any,
    typer.Option(
        parser=scale,
        metavar="NUMBER|data",
        help="For the priors paper and sparse: size of a typical reward, in whose units they are meant (data: the "
        "log's; without it, 1). The default prior takes its scale from the log and refuses this.",
    ),
]
Level = Annotated[
    float, typer.Option(parser=between("--level", 0, 1), metavar="NUMBER", help="Mass of the credible intervals.")
]
Horizon = Annotated[int | None, count("--horizon", "Steps that count; without it, for ever.")]
States = Annotated[
    Any,
    typer.Option(
        parser=names_or_number("--states"), metavar="N|A,B,...", help="How many states there are, or all their labels."
    ),
]
Actions = Annotated[
    Any,
    typer.Option(
        parser=names_or_number("--actions"),
        metavar="N|A,B,...",
        help="How many actions there are, or all their labels.",
    ),
]
Labels = Annotated[
    bool, typer.Option("--labels", help="Take states and actions as labels even where they are numbers.")
]
Start = Annotated[str | None, typer.Option(metavar="STATE", help="First state; without it, those seen in the data.")]
Draws = Annotated[int, count("--draws", "Value functions to draw.")]
Belief = Annotated[
    str | None,
    typer.Option(metavar="NAME", hidden=True, callback=_note_belief, help="Has no effect any more."),
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
    typer.Option(parser=page, metavar="FILE", help="Write a page into an .html file (replaced if it exists)."),
]
