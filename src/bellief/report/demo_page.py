"""The demo's pictures and words. Every number in the text is computed from the results."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bellief.evaluation.posterior import ValuePosterior
from bellief.experiments.results import RunResult, summarise
from bellief.plots import style
from bellief.plots.curves import plot_curve
from bellief.plots.value_pictures import Comparison, comparison_figure
from bellief.report.build import embed
from bellief.report.demo_results import STUCK_BELOW, Evaluated, stuck
from bellief.report.document import Document, Picture, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RULES = {"bbi": "BBI as printed (acts on the mean)", "bbi-optimistic": "BBI, optimistic (mean + 2 sd)"}
SHORT = {"bbi": "BBI as printed", "bbi-optimistic": "BBI, optimistic"}


def posterior_figure(evaluations: Sequence[Evaluated], narrow: bool = False) -> "Figure":
    """Three panels: the value posterior after little, more and much data."""
    first = evaluations[0]
    counts = {name: f"{runs[0].diagnostics['mdps']} MDPs, {len(runs)} runs" for name, runs in first.runs.items()}
    labels = {
        "monte-carlo": f"reference: Monte Carlo, {len(first.reference.samples):,} MDPs",
        "joint": f"ours: joint belief, {counts['joint']}",
        "gaussian": f"paper: Gaussian belief, {counts['gaussian']}",
        "mean-mdp": "mean MDP (one number)",
        "real": "value in the real chain",
    }
    comparisons = [
        Comparison(
            title=f"after {item.steps:,} steps",
            reference=item.reference.start_samples,
            methods={name: [run.start_samples for run in item.runs[name]] for name in ("joint", "gaussian")},
            line=float(item.mean_mdp.start_samples[0]),
            real=float(item.real_values @ item.reference.start),
        )
        for item in evaluations
    ]
    size: dict[str, Any] = {"width": 4.1, "legend_columns": 1} if narrow else {}
    return comparison_figure(comparisons, labels, "value of the start state (discount 0.99)", **size)


def curves_figure(results: Mapping[str, RunResult], optimum: float, narrow: bool = False) -> "Figure":
    """Learning curves on common axes, a panel for each rule: two bands in one panel would hide one another."""
    figure = style.new_figure(4.1, 5.6) if narrow else style.new_figure(7.6, 3.5)
    grid = (len(results), 1) if narrow else (1, len(results))
    panels = figure.subplots(*grid, sharex=True, sharey=True)
    for axes, (name, result) in zip(panels, results.items(), strict=True):
        # The first readings are averages of a few rewards: wide swings that say nothing about learning.
        shown = result.step >= min(100, result.steps // 4)
        plot_curve(
            result.step[shown],
            result.smoothed[:, shown],
            ax=style.tidy(axes),
            colour=style.colour_of(name),
            reference={"optimum": optimum},
        )
        axes.set_title(RULES[name], loc="left", color=style.colour_of(name), fontsize=style.FONT_SIZE + 0.5)
        axes.label_outer()
    return figure


def build_page(
    evaluations: Sequence[Evaluated],
    shown: Sequence[Evaluated],
    distances: pd.DataFrame,
    results: Mapping[str, RunResult],
    optimum: float,
    seed: int,
) -> Document:
    """The whole page; `shown` are the evaluations in the picture."""
    return Document(
        title="Bellief in two pictures",
        summary=[
            "What is a policy worth when all we have is a short log? And what does an agent gain by knowing how "
            "unsure it is? Both answers come from NChain, a chain of five states: walking back pays 2 at once, walking "
            "forward pays nothing until the far end, which pays 10; one step in five goes the other way."
        ],
        verdicts=[],
        sections=[_posterior_section(evaluations, shown, distances), _learning_section(results, optimum)],
        commands=[
            ("Your own log of states, actions and rewards:", _OWN_LOG),
            (
                "An agent of your choice:",
                'import bellief\nresult = bellief.run("nchain", "bbi-paper", settings={"rule": "optimistic"})',
            ),
        ],
        footer=f"Made by bellief demo with seed {seed}. The same seed gives the same page on the same machine.",
    )


_OWN_LOG = """import bellief
log = bellief.Transitions.from_csv("log.csv")
posterior = bellief.evaluate(log, policy="uniform", discount=0.99)
posterior.start_summary()"""


def _interval(posterior: ValuePosterior) -> tuple[float, float]:
    """The 90% interval of the start value."""
    summary: dict[str, Any] = posterior.start_summary(0.9)
    return summary["low"], summary["high"]


def _width(posterior: ValuePosterior) -> float:
    low, high = _interval(posterior)
    return high - low


def _posterior_section(evaluations, shown: Sequence[Evaluated], distances: pd.DataFrame) -> Section:
    first, last = shown[0], shown[-1]
    ratios = [float(np.mean([_width(run) for run in item.runs["gaussian"]])) / _width(item.reference) for item in shown]
    paragraphs = [
        f"More data, more certainty: the 90% interval of the start state's value is {_width(first.reference):.0f} wide "
        f"after {first.steps:,} steps and {_width(last.reference):.0f} wide after {last.steps:,}.",
        "The Gaussian belief of the paper collapses: at every induction step it forgets which MDP a value came from, "
        f"and its intervals end up {_percent(min(ratios))} to {_percent(max(ratios))} as wide as the reference says, "
        "hardly more than the one number of the mean MDP.",
        "The joint belief keeps each value with its MDP and so keeps the spread; as it starts from a point in each MDP "
        "here, it is Monte Carlo over its own MDPs, no more and no less.",
    ]
    picture = Picture(
        address=embed(posterior_figure(shown)),
        narrow=embed(posterior_figure(shown, narrow=True)),
        alt=f"Density of the start state's value after {_listed([f'{item.steps:,}' for item in shown])} steps. "
        "The grey reference hill narrows with data. The blue joint belief follows it; the orange Gaussian belief is a "
        "set of spikes near the dashed line of the mean MDP.",
        title=f"The policy goes {shown[0].policy}. All curves are scaled to the same height, because at true scale "
        f"the spikes would flatten the rest; far tails are cut off.{_about_the_prior(shown)}",
        files=["posterior.png", "posterior.svg", "posterior.pdf", "posterior.csv"],
    )
    return Section("", "How sure can a log make us?", paragraphs, [picture, _distance_table(distances)])


def _about_the_prior(shown: Sequence[Evaluated]) -> str:
    """A sentence about the prior, where the real value lies outside the interval."""
    missed = []
    for item in shown:
        low, high = _interval(item.reference)
        if not low <= item.real_values @ item.reference.start <= high:
            missed.append(f"{item.steps:,}")
    if not missed:
        return ""
    return (
        f" After {_listed(missed)} steps the real value lies outside the 90% interval: the paper's prior expects "
        "rewards near 0 wherever the log is thin."
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _distance_table(distances: pd.DataFrame) -> Table:
    own = distances[distances["policy"] != "paper"]
    few, most = int(own["mdps"].min()), int(own["mdps"].max())
    columns = [("mean-mdp", None), ("gaussian", few), ("joint", few), ("joint", most)]
    rows = []
    for (policy, steps), group in distances.groupby(["policy", "steps"], sort=False):
        cells = []
        for method, mdps in columns:
            same = group["mdps"].isna() if mdps is None else group["mdps"] == mdps
            found = group[(group["method"] == method) & same.fillna(False)]
            cells.append("–" if found.empty else _with_ratio(method, found.iloc[0]))
        rows.append(["paper, printed" if policy == "paper" else policy, f"{steps:,}", *cells])
    runs = int(own["runs"].max())
    return Table(
        caption="Distance to the reference distribution (smaller is better)",
        columns=["policy", "steps", "mean MDP", f"Gaussian, {few} MDPs", f"joint, {few} MDPs", f"joint, {most} MDPs"],
        rows=rows,
        notes=[
            "Wasserstein distance, averaged over the five states; in brackets the ratio to the mean MDP. Gaussian and "
            f"joint are means over {runs} runs, and run by run both see the same MDPs.",
            "The paper's policy takes 'the first action' with probability 0.8, which can be read both ways; its logs "
            "differ from ours, so compare the ratios.",
        ],
        files=["wasserstein.csv"],
    )


def _with_ratio(method: str, row: pd.Series) -> str:
    text = f"{row['distance']:.2f}"
    return text if method == "mean-mdp" else f"{text} ({row['ratio_to_mean_mdp']:.2f})"


def _learning_section(results: Mapping[str, RunResult], optimum: float) -> Section:
    printed, optimistic = results["bbi"], results["bbi-optimistic"]
    paragraphs = [
        "BBI plans with a distribution over value functions. As printed it then acts on the mean, and has no reason to "
        f"try again what once looked poor: {stuck(printed, optimum)} of its {printed.runs} runs ended with a policy "
        "well below the optimum.",
        "Optimistic BBI keeps the spread by the joint belief and acts on mean plus two standard deviations of what it "
        "could soon come to believe, so that it tries what can be learned; of its "
        f"{optimistic.runs} runs {stuck(optimistic, optimum)} ended that way.",
    ]
    picture = Picture(
        address=embed(curves_figure(results, optimum)),
        narrow=embed(curves_figure(results, optimum, narrow=True)),
        alt=f"Learning curves over {printed.steps:,} steps. Last average reward: "
        f"{printed.final_average_reward.mean():.2f} for BBI as printed, "
        f"{optimistic.final_average_reward.mean():.2f} with optimism; the optimum is {optimum:.2f}.",
        title=f"Mean of {printed.runs} runs, each smoothed with a half-life of {printed.half_life:,.0f} steps. Band: "
        "5th to 95th percentile of the runs. Thin dark lines: one standard error.",
        files=["curves.png", "curves.svg", "curves.pdf", "curves.csv"],
    )
    rows = [
        [
            SHORT[name],
            _with_error(result.final_average_reward),
            _with_error(result.gain),
            f"{stuck(result, optimum)} of {result.runs}",
        ]
        for name, result in results.items()
    ]
    table = Table(
        caption="After the last step",
        columns=["agent", "reward per step, last tenth", "long-run reward of the last policy", "runs stuck"],
        rows=rows,
        notes=[
            "Mean and standard error over runs. The long-run reward is computed exactly from the chain; the best "
            f"policy's is {optimum:.4f}, which a finite stretch can exceed by chance. Stuck: a last policy below "
            f"{STUCK_BELOW:.0%} of it."
        ],
    )
    return Section("", "What does an agent gain by it?", paragraphs, [picture, table])


def _with_error(values: np.ndarray) -> str:
    summary = summarise(values)
    return f"{summary['mean']:.3f}" + ("" if summary["se"] is None else f" ± {summary['se']:.3f}")
