"""Commands that say how far to trust a result: check, sensitivity, certify."""

import math
from typing import Annotated, Any

import typer

import bellief
from bellief.cli import show
from bellief.cli.log_options import Data, Discount, Level, PolicyName, taken_lines
from bellief.cli.option_groups import Reading
from bellief.cli.options import Json, Quiet, Seed, between, count, grouped, whole
from bellief.cli.progress import progress
from bellief.errors import UserError


@grouped
def check(
    *,
    data: Data = None,
    permutations: Annotated[
        int, typer.Option(parser=whole("--permutations", 99), metavar="N", help="Shuffles behind each p value.")
    ] = 999,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
    reading: Reading,
) -> None:
    """Check the assumptions of evaluation: Markov, stationary, no outlying rewards."""
    with progress("Reading", quiet):
        log = reading.rows(data)
    with progress("Checking", quiet):
        document = bellief.check(log, permutations=permutations, seed=seed).to_dict()
    document["columns"] = log.origin.columns
    document["unused_columns"] = list(log.origin.unused)
    if json:
        show.print_json(document)
        return
    names = {
        "markov": "next state depends on state and action only",
        "drift": "second half behaves like the first",
        "reward_shape": "reward noise has no heavy tails",
    }
    show.print_lines(*taken_lines(log.origin))
    for name, meaning in names.items():
        found = document[name]
        show.print_lines(f"{meaning}: {'too few data' if found is None else f'p = {found:.3g}'}")
    show.print_lines(f"stray rewards: {len(document['outliers'])}")
    show.print_lines(*(f"Note: {warning}" for warning in document["warnings"]))


@grouped
def sensitivity(
    *,
    data: Data = None,
    policy: PolicyName = "uniform",
    discount: Discount = 0.99,
    threshold: Annotated[
        float | None,
        typer.Option(
            parser=between("--threshold", -math.inf, math.inf),
            metavar="NUMBER",
            help="Ask whether the value is above it.",
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Ask whether the value is above this policy's.")
    ] = None,
    level: Level = 0.9,
    draws: Annotated[int, count("--draws", "Value functions to draw under each prior.")] = 1000,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
    reading: Reading,
) -> None:
    """Check whether the answer depends on the prior, by evaluating under eight of them."""
    with progress("Reading", quiet) as tell:
        log = reading.log(data, tell)
    with progress("Evaluating under several priors", quiet):
        document = bellief.prior_sensitivity(
            log, policy, discount, threshold=threshold, against=against, level=level, draws=draws, seed=seed
        ).to_dict()
    if json:
        show.print_json(document)
        return
    asked = document["question"] is not None
    columns = ["mean", "low", "high"] + (["probability", "verdict"] if asked else [])
    show.print_rows(
        ["prior", *columns], [[row["prior"], *(row[name] for name in columns)] for row in document["priors"]]
    )
    show.print_lines(*(f"Note: {warning}" for warning in document["warnings"]))
    if not document["warnings"]:
        show.print_lines("All of these priors lead to the same conclusion.")


def certify(
    transitions: Annotated[int, count("--transitions", "Transitions in your log.")],
    states: Annotated[int | None, count("--states", "States of your problem.")] = None,
    features: Annotated[int | None, count("--features", "Instead, features of a state that is a vector.")] = None,
    actions: Annotated[int, count("--actions", "Actions.")] = 2,
    discount: Discount = 0.9,
    ends: Annotated[bool, typer.Option("--ends", help="Episodes can end.")] = False,
    prior: Annotated[str, typer.Option(metavar="NAME", help="logged, paper or sparse.")] = "logged",
    method: Annotated[str, typer.Option(metavar="NAME", help="Method of evaluation.")] = "joint",
    simulations: Annotated[
        int, typer.Option(parser=whole("--simulations", 20), metavar="N", help="Simulated problems.")
    ] = 500,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how often intervals hold the truth in simulated problems of your size (calibration)."""
    with progress("Simulating", quiet) as report:
        document = _certificate(
            states, features, ends, prior, transitions=transitions, actions=actions, discount=discount, method=method,
            simulations=simulations, seed=seed, progress=report,
        )  # fmt: skip
    if json:
        show.print_json(document)
        return
    show.print_lines(
        f"{simulations} problems of {f'{states} states' if features is None else f'{features} features'}, {actions} "
        f"actions and {transitions} transitions from prior {prior}, method {method}"
    )
    estimated = document["levels_with_estimated_scale"]
    columns = ["interval", "holds the truth", "Monte Carlo error", "median width"]
    rows = [[f"{row['level']:.0%}", row["coverage"], row["error"], row["width"]] for row in document["levels"]]
    if estimated is not None:  # what a user of this prior gets, who does not know the scale of rewards beforehand
        columns.append("holds it with the scale from the log")
        rows = [[*row, other["coverage"]] for row, other in zip(rows, estimated, strict=True)]
    show.print_rows(columns, rows)
    show.print_lines(*_refused(document), document["verdict"])


def _refused(document: dict[str, Any]) -> list[str]:
    """How many logs are not in the table, where there are any."""
    known, estimated = document["refused"], document["refused_with_estimated_scale"]
    if not known and not estimated:
        return []
    also = "" if estimated is None else f" ({estimated:.0%} with the scale from the log)"
    return [
        f"Not counted: {known:.0%}{also} of the logs drawn, which evaluate refuses because the policy may never end."
    ]


def _certificate(states: int | None, features: int | None, ends: bool, prior: str, **options: Any) -> dict[str, Any]:
    """For countable states or for vectors, whichever size was given."""
    if (states is None) == (features is None):
        raise UserError("certify needs either --states or --features.")
    if states is not None:
        return bellief.certify(states, terminates=ends, prior=prior, **options).to_dict()
    if ends or prior != "logged":
        raise UserError("With --features episodes do not end and the prior is logged: leave out --ends and --prior.")
    from bellief.decisions.feature_calibration import certify_features

    assert features is not None
    return certify_features(features, **options).to_dict()
