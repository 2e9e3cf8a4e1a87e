"""The commands about logged data: evaluate, compare, improve, collect."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bellief.cli import show
from bellief.cli.log_options import (
    Accuracy,
    Belief,
    Discount,
    Draws,
    FeatureMap,
    Horizon,
    Level,
    PolicyName,
    PriorName,
    Report,
    RewardRange,
    RewardScale,
    Start,
    Support,
)
from bellief.cli.log_source import LogSource, takes_log
from bellief.cli.options import Json, Plot, Quiet, Seed, between, count, whole
from bellief.cli.progress import progress
from bellief.registry import METHOD1_VALUES, METHODS


@takes_log
def evaluate(
    source: LogSource,
    policy: PolicyName = "uniform",
    discount: Discount = 0.99,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=", ".join(METHODS) + ".",
        ),
    ] = "joint",
    prior: PriorName = "logged",
    reward_scale: RewardScale = None,
    level: Level = 0.9,
    horizon: Horizon = None,
    start: Start = None,
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
    belief: Belief = None,
    support: Support = None,
    reward_range: RewardRange = None,
    features: FeatureMap = None,
    reward_features: FeatureMap = None,
    value_features: FeatureMap = None,
    dynamics: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where states are vectors: difference or direct.")
    ] = None,
    seed: Seed = 0,
    plot: Plot = None,
    report: Report = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save all draws in an .npz file (ValuePosterior.load reads it).")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the value of a policy, with credible intervals."""
    document: dict[str, Any] = {"variance": None}

    def compute(log: Any) -> Any:
        from bellief.evaluation import evaluate

        posterior = evaluate(
            log, policy, discount, method=method, prior=prior, reward_scale=reward_scale, horizon=horizon, start=start,
            level=level, seed=seed, mdps=mdps, draws=draws, accuracy=accuracy, lookahead=lookahead, final=final,
            support=support, reward_range=reward_range,
            settings=_look(features, reward_features, value_features, dynamics),
        )  # fmt: skip
        if save is not None:
            posterior.save(save)
        # The split is of tables, and of the return of an infinite horizon.
        if json and "features" not in posterior.diagnostics and horizon is None and method in ("joint", "monte-carlo"):
            from bellief.decisions import variance_split

            split = variance_split(
                log, policy, discount, prior=prior, reward_scale=reward_scale, start=start, draws=min(draws, 500),
                seed=seed, support=support, reward_range=reward_range,
            )  # fmt: skip
            document["variance"] = split.to_dict()
        return posterior

    with _answer("Evaluating", source, plot, report, quiet, rows=method == "bootstrap") as ask:
        posterior = ask(compute)
    if json:
        show.print_json(posterior.to_dict() | document)
    else:
        show.print_posterior(posterior.to_dict(), policy)


@takes_log
def compare(
    source: LogSource,
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="POLICY...",
            show_default=False,
            help="Two or more: uniform, behaviour, always:ACTION, or CSV files.",
        ),
    ],
    discount: Discount = 0.99,
    prior: PriorName = "logged",
    reward_scale: RewardScale = None,
    level: Level = 0.9,
    horizon: Horizon = None,
    start: Start = None,
    draws: Draws = 1000,
    accuracy: Accuracy = None,
    target: Annotated[
        float, typer.Option(parser=between("--target", 0.5, 1), metavar="NUMBER", help="How sure is sure enough.")
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
    belief: Belief = None,
    support: Support = None,
    reward_range: RewardRange = None,
    seed: Seed = 0,
    plot: Plot = None,
    report: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare policies: which is best, what a wrong choice costs, how many more transitions would decide."""

    def compute(log: Any) -> Any:
        from bellief.decisions import compare

        return compare(
            log, policies, discount, prior=prior, reward_scale=reward_scale, level=level, horizon=horizon, start=start,
            draws=draws, accuracy=accuracy, target=target, simulations=simulations, collector=collector,
            support=support, reward_range=reward_range, seed=seed,
        )  # fmt: skip

    with _answer("Comparing", source, plot, report, quiet) as ask:
        comparison = ask(compute)
    if json:
        show.print_json(comparison.to_dict())
    else:
        show.print_policies(comparison.to_dict())


@takes_log
def improve(
    source: LogSource,
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
    prior: PriorName = "logged",
    reward_scale: RewardScale = None,
    level: Level = 0.9,
    start: Start = None,
    draws: Draws = 1000,
    mdps: Annotated[
        int | None, count("--mdps", "MDPs in which the policy is chosen; without it 200 (sparse: 20).")
    ] = None,
    belief: Belief = None,
    support: Support = None,
    reward_range: RewardRange = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the policy as a CSV file that --policy reads.")
    ] = None,
    plot: Plot = None,
    report: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recommend a policy, with the probability that it is better than the log's own."""

    def compute(log: Any) -> Any:
        import numpy as np

        from bellief.decisions import improve
        from bellief.policies import save_policy

        improvement = improve(
            log, discount, objective=objective, tail=tail, min_visits=min_visits, prior=prior,
            reward_scale=reward_scale, level=level, start=start, draws=draws, mdps=mdps,
            support=support, reward_range=reward_range, mode=mode, seed=seed,
        )  # fmt: skip
        if out is not None:
            # States that are merely ends have no rows, as nobody acts there.
            listed = np.isin(np.arange(len(improvement.policy)), improvement.listed)[:, None]
            table = np.where(listed, improvement.probabilities, 0.0)
            save_policy(out, table, improvement.state_labels, improvement.action_labels)
        return improvement

    with _answer("Improving", source, plot, report, quiet) as ask:
        improvement = ask(compute)
    if json:
        show.print_json(improvement.to_dict())
    else:
        show.print_improvement(improvement.to_dict())


@takes_log
def collect(
    source: LogSource,
    policy: PolicyName = "uniform",
    discount: Discount = 0.99,
    visits: Annotated[int, count("--visits", "Further visits of a pair to weigh.")] = 1,
    top: Annotated[int, count("--top", "Pairs to show.")] = 10,
    prior: PriorName = "logged",
    reward_scale: RewardScale = None,
    start: Start = None,
    draws: Annotated[int, count("--draws", "MDPs to sample.")] = 400,
    belief: Belief = None,
    support: Support = None,
    reward_range: RewardRange = None,
    seed: Seed = 0,
    plot: Plot = None,
    report: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank state-action pairs by how much observing them would reduce the uncertainty of a policy's value."""

    def compute(log: Any) -> Any:
        from bellief.decisions import collect_next

        return collect_next(
            log, policy, discount, visits=visits, prior=prior, reward_scale=reward_scale, start=start, draws=draws,
            support=support, reward_range=reward_range, seed=seed,
        )  # fmt: skip

    with _answer("Weighing", source, plot, report, quiet) as ask:
        plan = ask(compute)
    if json:
        show.print_json(plan.to_dict(top))
    else:
        show.print_collection(plan.to_dict(top), policy)


def _look(features: str | None, reward: str | None, value: str | None, dynamics: str | None) -> Any:
    """Settings for states that are vectors; None where nothing was said."""
    given = {"features": features, "reward_features": reward, "value_features": value, "dynamics": dynamics}
    given = {name: text for name, text in given.items() if text is not None}
    if not given:
        return None
    from bellief.evaluation import FeatureSettings

    return FeatureSettings(**given)  # type: ignore[arg-type]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (evaluate, compare, improve, collect):
        app.command()(command)


@contextlib.contextmanager
def _answer(doing: str, source: LogSource, plot: Path | None, report: Path | None, quiet: bool, rows: bool = False):
    """Read the log piece by piece under a progress bar; compute, and write picture and page, under another."""
    with contextlib.ExitStack() as bars:

        def ask(compute: Callable[[Any], Any]) -> Any:
            with progress("Reading", quiet) as told:
                log = source.rows() if rows else source.log(told)
            bars.enter_context(progress(doing, quiet))
            result = compute(log)
            if plot is not None:
                axes = result.comparison.plot() if not hasattr(result, "plot") else result.plot()
                show.write_picture(axes, plot)
            if report is not None:
                from bellief import __version__
                from bellief.report.offline_page import write_report

                write_report(result, report, "bellief " + " ".join(sys.argv[1:]), __version__)
            return result

        yield ask
