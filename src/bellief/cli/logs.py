"""The commands about logged data: evaluate, compare, improve, collect."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import bellief
from bellief.cli import show
from bellief.cli.log_options import Accuracy, Data, Discount, Draws, FeatureMap, Horizon, Level, PolicyName
from bellief.cli.option_groups import Assumptions, Output, Reading
from bellief.cli.options import Seed, between, count, grouped, whole
from bellief.cli.progress import progress
from bellief.registry import METHOD1_VALUES, METHODS


@grouped
def evaluate(
    *,
    data: Data = None,
    policy: PolicyName = "uniform",
    discount: Discount = 0.99,
    method: Annotated[str, typer.Option(metavar="NAME", help=", ".join(METHODS) + ".")] = "joint",
    level: Level = 0.9,
    horizon: Horizon = None,
    draws: Draws = 1000,
    accuracy: Accuracy = None,
    mdps: Annotated[
        int | None,
        count(
            "--mdps",
            f"MDPs to sample; by default as many as draws, 10 for {', '.join(METHOD1_VALUES)}, 1000 for method2/3.",
        ),
    ] = None,
    lookahead: Annotated[
        int | None,
        count("--lookahead", "Induction steps without a horizon, where the induction starts at zero or pooled."),
    ] = None,
    final: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where the induction starts: zero, own or pooled.")
    ] = None,
    assumptions: Assumptions,
    features: FeatureMap = None,
    reward_features: FeatureMap = None,
    value_features: FeatureMap = None,
    dynamics: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where states are vectors: difference or direct.")
    ] = None,
    seed: Seed = 0,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save all draws in an .npz file (ValuePosterior.load reads it).")
    ] = None,
    output: Output,
    reading: Reading,
) -> None:
    """Estimate the value of a policy, with credible intervals."""
    document: dict[str, Any] = {"variance": None}

    def compute(log: Any) -> Any:
        posterior = bellief.evaluate(
            log, policy, discount, method=method, horizon=horizon, level=level, seed=seed, mdps=mdps, draws=draws,
            accuracy=accuracy, lookahead=lookahead, final=final, settings=_feature_settings(
                features=features, reward_features=reward_features, value_features=value_features, dynamics=dynamics
            ),
            **assumptions.options(),
        )  # fmt: skip
        if save is not None:
            posterior.save(save)
        # The split needs countable states and an infinite horizon.
        is_split = "features" not in posterior.diagnostics and horizon is None and method in ("joint", "monte-carlo")
        if output.json and is_split:
            split = bellief.variance_split(
                log, policy, discount, draws=min(draws, 500), seed=seed, **assumptions.options()
            )
            document["variance"] = split.to_dict()
        return posterior

    posterior = _answer("Evaluating", compute, data, reading, output, rows=method == "bootstrap").to_dict()
    if output.json:
        show.print_json(posterior | document)
    else:
        show.print_posterior(posterior, policy)


@grouped
def compare(
    *,
    data: Data = None,
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="POLICY...",
            show_default=False,
            help="Two or more: uniform, behaviour, always:ACTION, or CSV files.",
        ),
    ],
    discount: Discount = 0.99,
    level: Level = 0.9,
    horizon: Horizon = None,
    draws: Draws = 1000,
    accuracy: Accuracy = None,
    target: Annotated[
        float,
        typer.Option(
            parser=between("--target", 0.5, 1),
            metavar="NUMBER",
            help="Probability of choosing the best policy that is high enough.",
        ),
    ] = 0.95,
    simulations: Annotated[
        int | None,
        typer.Option(
            parser=whole("--simulations"),
            metavar="N",
            help="Simulated worlds for how many more transitions are needed; 0 leaves it out. Without it 100, up to "
            "150 states.",
        ),
    ] = None,
    collector: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="Policy that would collect further data.")
    ] = "behaviour",
    assumptions: Assumptions,
    seed: Seed = 0,
    output: Output,
    reading: Reading,
) -> None:
    """Compare policies: which is best, what a wrong choice costs, how many more transitions would decide."""

    def compute(log: Any) -> Any:
        return bellief.compare(
            log, policies, discount, level=level, horizon=horizon, draws=draws, accuracy=accuracy, target=target,
            simulations=simulations, collector=collector, seed=seed, **assumptions.options(),
        )  # fmt: skip

    comparison = _answer("Comparing", compute, data, reading, output).to_dict()
    if output.json:
        show.print_json(comparison)
    else:
        show.print_policies(comparison)


@grouped
def improve(
    *,
    data: Data = None,
    discount: Discount = 0.99,
    objective: Annotated[
        str, typer.Option(metavar="NAME", help="What to maximise: mean, quantile or cvar of the value posterior.")
    ] = "mean",
    tail: Annotated[
        float, typer.Option(parser=between("--tail", 0, 1), metavar="NUMBER", help="For quantile and cvar.")
    ] = 0.1,
    mode: Annotated[
        str,
        typer.Option(metavar="NAME", help="safe: differ from the log only where data support it; free: anywhere."),
    ] = "safe",
    min_visits: Annotated[
        int | None,
        typer.Option(
            parser=whole("--min-visits"),
            metavar="N",
            help="Recommend only actions tried so often in their state; without it 5 if safe, 1 if free.",
        ),
    ] = None,
    level: Level = 0.9,
    draws: Draws = 1000,
    mdps: Annotated[
        int | None, count("--mdps", "MDPs in which the policy is chosen; without it 200 (sparse: 20).")
    ] = None,
    assumptions: Assumptions,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the policy as a CSV file that --policy reads.")
    ] = None,
    output: Output,
    reading: Reading,
) -> None:
    """Recommend a policy, with the probability that it is better than the log's own."""

    def compute(log: Any) -> Any:
        improvement = bellief.improve(
            log, discount, objective=objective, tail=tail, min_visits=min_visits, level=level, draws=draws, mdps=mdps,
            mode=mode, seed=seed, **assumptions.options(),
        )  # fmt: skip
        if out is not None:
            improvement.save_policy(out)
        return improvement

    improvement = _answer("Improving", compute, data, reading, output).to_dict()
    if output.json:
        show.print_json(improvement)
    else:
        show.print_improvement(improvement)


@grouped
def collect(
    *,
    data: Data = None,
    policy: PolicyName = "uniform",
    discount: Discount = 0.99,
    visits: Annotated[int, count("--visits", "Further visits of a pair to weigh.")] = 1,
    top: Annotated[int, count("--top", "Pairs to show.")] = 10,
    draws: Annotated[int, count("--draws", "MDPs to sample.")] = 400,
    assumptions: Assumptions,
    seed: Seed = 0,
    output: Output,
    reading: Reading,
) -> None:
    """Rank state-action pairs by how much observing them would reduce the uncertainty of a policy's value."""

    def compute(log: Any) -> Any:
        return bellief.collect_next(
            log, policy, discount, visits=visits, draws=draws, seed=seed, **assumptions.options()
        )

    plan = _answer("Weighing", compute, data, reading, output).to_dict(top)
    if output.json:
        show.print_json(plan)
    else:
        show.print_collection(plan, policy)


def _feature_settings(**options: str | None) -> Any:
    """Settings for states that are vectors; None where none is given."""
    given = {name: text for name, text in options.items() if text is not None}
    if not given:
        return None
    return bellief.FeatureSettings(**given)  # type: ignore[arg-type]


def _answer(
    doing: str,
    compute: Callable[[Any], Any],
    data: str | None,
    reading: Reading,
    output: Output,
    rows: bool = False,
) -> Any:
    """Read the log under a progress bar; compute, and write picture and page, under another."""
    with progress("Reading", output.quiet) as tell:
        log = reading.rows(data) if rows else reading.log(data, tell)
    with progress(doing, output.quiet):
        result = compute(log)
        output.write(result)
    return result
