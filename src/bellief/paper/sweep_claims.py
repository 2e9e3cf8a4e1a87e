"""Tests of what the paper says of its learning curves: rewards, their spread over runs, steps survived, weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bellief.paper.agents import OURS
from bellief.paper.claims import (
    FAILS,
    HOLDS,
    MARGIN,
    OPEN,
    SLIGHT,
    UNCLEAR,
    Check,
    Measured,
    Outcome,
    agreed,
    any_reading,
    percent,
    plain,
    positive,
    together,
    within,
    worst,
)
from bellief.paper.computed_results import Missing, Results, Runs
from bellief.paper.tasks import Size
from bellief.plots.statistics import Estimate, bootstrap, paired_difference

MODEL_BASED = ("BBI", "MMBI", "PSRL")
EQUAL = "after equal numbers of steps"
VARIANTS_DIFFER = "it depends on the variant, which is not printed"


def _smaller(*sizes: Size) -> Size:
    return Size(min(size.runs for size in sizes), min(size.steps for size in sizes))


def _pair(results: Results, sweep: str, first: str, second: str) -> tuple[Runs, Runs, Size]:
    one, other = results.runs(sweep, first), results.runs(sweep, second)
    return one, other, _smaller(one.size, other.size)


def _of_optimum(found: Measured) -> str:
    return "; ".join(f"{name}: {percent(gap)}" for name, gap in found.estimates.items()) + " of the optimum"


def relative_difference(
    results: Results, sweep: str, first: str, second: str, level: float = 0.95
) -> tuple[Estimate, Size]:
    """Reward per step of the first agent less the second's, run by run, in the last half of the shorter length, as a
    share of the best possible.
    """
    one, other, size = _pair(results, sweep, first, second)
    optimum = results.optimum(sweep)
    assert optimum is not None
    span, rows = (size.steps // 2, size.steps), slice(0, size.runs)
    gap = paired_difference(one.reward(*span)[rows] / optimum, other.reward(*span)[rows] / optimum, level=level)
    return gap, size


def _difference(sweep: str, first: str, second: str) -> Callable[[Results], Measured]:
    def measure(results: Results) -> Measured:
        gap, size = relative_difference(results, sweep, first, second)
        return Measured({f"{first} less {second}": gap}, size)

    return measure


def _lacking(variants: Sequence[Any]) -> str:
    return f"{len(variants)} variants have to be run"


def _only(found: Measured) -> Estimate:
    (estimate,) = found.estimates.values()
    return estimate


# Rewards


def similar(sweep: str, first: str, second: str) -> Check:
    """Less than `MARGIN` of the best possible reward apart."""

    def rule(found: Measured) -> Outcome:
        gap = _only(found)
        state = within(gap, -MARGIN, MARGIN)
        note = "" if state != FAILS else f"{first} is {'ahead' if gap.value > 0 else 'behind'}"
        return Outcome(state, _of_optimum(found), note)

    return Check(_difference(sweep, first, second), rule)


def not_behind(sweep: str, first: str, second: str) -> Check:
    """Ahead, or behind by less than `MARGIN` of the best possible reward."""

    def rule(found: Measured) -> Outcome:
        return Outcome(within(_only(found), -MARGIN, np.inf), _of_optimum(found))

    return Check(_difference(sweep, first, second), rule)


def slightly_worse(sweep: str, first: str, second: str) -> Check:
    """Worse, but by less than `SLIGHT`: after equal numbers of steps, or as the figure shows it, where the first was
    run for fewer, at the end of each.
    """

    def rule(found: Measured) -> Outcome:
        state = any_reading([within(gap, -SLIGHT, 0.0) for gap in found.estimates.values()])
        note = "it depends on whether curves of equal length are compared" if state == OPEN else ""
        return Outcome(state, _of_optimum(found), note)

    return Check(_both_ends(sweep, first, second), rule)


def _both_ends(sweep: str, first: str, second: str) -> Callable[[Results], Measured]:
    """The difference of two agents after equal numbers of steps, and at the end of each."""

    def measure(results: Results) -> Measured:
        gap, size = relative_difference(results, sweep, first, second)
        ends = [results.runs(sweep, agent) for agent in (first, second)]
        rewards = [runs.reward(runs.size.steps // 2, runs.size.steps)[: size.runs] for runs in ends]
        optimum = results.optimum(sweep)
        assert optimum is not None
        last = paired_difference(rewards[0] / optimum, rewards[1] / optimum)
        told = f"{first} less {second}"
        return Measured({f"{told} {EQUAL}": gap, f"{told} at the end of each": last}, size)

    return measure


def ahead(sweep: str, first: str, *others: str) -> Check:
    """More reward, by an interval that leaves zero out, than each of the variants of another agent."""

    def measure(results: Results) -> Measured:
        found = {other: relative_difference(results, sweep, first, other) for other in others}
        gaps = {f"{first} less {other}": gap for other, (gap, _) in found.items()}
        return Measured(gaps, _smaller(*(size for _, size in found.values())))

    def rule(found: Measured) -> Outcome:
        if len(found.estimates) < len(others):
            return Outcome(UNCLEAR, _of_optimum(found), _lacking(others))
        state = together([positive(gap) for gap in found.estimates.values()])
        return Outcome(state, _of_optimum(found), VARIANTS_DIFFER if state == OPEN else "")

    return Check(measure, rule)


def better_mean(sweep: str, first: str, second: str) -> Check:
    """More reward by an interval that leaves zero out: after equal numbers of steps, or at the end of each curve."""

    def rule(found: Measured) -> Outcome:
        state = any_reading([positive(gap) for gap in found.estimates.values()])
        note = "it depends on whether curves of equal length are compared" if state == OPEN else ""
        return Outcome(state, _of_optimum(found), note)

    return Check(_both_ends(sweep, first, second), rule)


def unsatisfactory(sweep: str, variants: Sequence[str]) -> Check:
    """More than `MARGIN` of the best possible reward below the best of BBI, MMBI and PSRL over the same steps.

    Of several `variants` that the paper leaves open, all must agree.
    """

    def measure(results: Results) -> Measured:
        found, sizes = {}, []
        for agent in variants:
            gaps = {other: relative_difference(results, sweep, agent, other) for other in MODEL_BASED}
            best = min(gaps, key=lambda other: gaps[other][0].value)
            found[f"{agent} less {best}, the best of the three"] = gaps[best][0]
            sizes.append(gaps[best][1])
        return Measured(found, _smaller(*sizes))

    def rule(found: Measured) -> Outcome:
        if len(found.estimates) < len(variants):
            return Outcome(UNCLEAR, _of_optimum(found), _lacking(variants))
        state = agreed(list(found.estimates.values()), -np.inf, -MARGIN)
        return Outcome(state, _of_optimum(found), VARIANTS_DIFFER if state == OPEN else "")

    return Check(measure, rule)


def little_effect(sweep: str, agents: Sequence[str], base: str) -> Check:
    """Every agent of a list within `MARGIN` of the base."""

    def measure(results: Results) -> Measured:
        found = {agent: relative_difference(results, sweep, agent, base) for agent in agents if agent != base}
        gaps = {f"{agent} less {base}": gap for agent, (gap, _) in found.items()}
        return Measured(gaps, _smaller(*(size for _, size in found.values())))

    def rule(found: Measured) -> Outcome:
        return Outcome(worst([within(gap, -MARGIN, MARGIN) for gap in found.estimates.values()]), _of_optimum(found))

    return Check(measure, rule)


def no_significant_difference(sweep: str, agents: Sequence[str]) -> Check:
    """No pair of a list apart by an interval that leaves zero out (with Bonferroni's correction).

    Intervals that hold zero and reach beyond `MARGIN` decide nothing: too few runs find no difference anywhere.
    """

    def measure(results: Results) -> Measured:
        pairs = [(one, other) for place, one in enumerate(agents) for other in agents[place + 1 :]]
        level = 1 - 0.05 / len(pairs)
        found = {pair: relative_difference(results, sweep, *pair, level=level) for pair in pairs}
        told = {f"{one.split(', ')[-1]} less {other.split(', ')[-1]}": found[one, other][0] for one, other in pairs}
        return Measured(told, _smaller(*(size for _, size in found.values())))

    def rule(found: Measured) -> Outcome:
        gaps = list(found.estimates.values())
        if any(gap.low > 0 or gap.high < 0 for gap in gaps):
            return Outcome(FAILS, _of_optimum(found))
        wide = [gap for gap in gaps if within(gap, -MARGIN, MARGIN) != HOLDS]
        note = "no difference is significant, but the intervals are wider than 10% of the optimum" if wide else ""
        return Outcome(UNCLEAR if wide else HOLDS, _of_optimum(found), note)

    return Check(measure, rule)


# Spread over runs


def percentile_range(values: Float[np.ndarray, "... runs g"]) -> Float[np.ndarray, "..."]:
    """From the 5th to the 95th percentile over runs, averaged over readings."""
    low, high = np.quantile(values, [0.05, 0.95], axis=-2)
    return np.mean(high - low, axis=-1)


def _on_log_axis(runs: Runs, first: int, last: int, points: int = 60) -> Float[np.ndarray, "runs points"]:
    """The smoothed reward at steps that are evenly spaced on a logarithmic axis."""
    steps = runs.step[(runs.step >= first) & (runs.step <= last)]
    if not len(steps):
        raise Missing(f"there is no reading from step {first} to {last}")
    wanted = np.geomspace(steps[0], steps[-1], points)
    return runs.spread(first, last)[:, np.clip(np.searchsorted(steps, wanted), 0, len(steps) - 1)]


def spread_difference(one: np.ndarray, other: np.ndarray, resamples: int = 1_000) -> Estimate:
    """Percentile range of the first less the second's, each resampled over its own runs."""
    rng = np.random.default_rng(0)

    def resampled(values: np.ndarray) -> np.ndarray:
        chosen = rng.integers(0, len(values), (resamples, len(values)))
        return percentile_range(values[chosen])

    gaps = resampled(one) - resampled(other)
    low, high = np.quantile(gaps, [0.025, 0.975])
    return Estimate(float(percentile_range(one) - percentile_range(other)), float(low), float(high))


def steadier(sweep: str, first: str, *others: str, in_order: bool = False) -> Check:
    """A smaller range from the 5th to the 95th percentile of runs than every variant of another agent, up to the
    shorter length: in the last half, or over the whole curve as it is drawn, on a logarithmic axis. The paper does not
    say where it looks.

    `in_order`: the sentence lists the two, perhaps in their order; where that fails the other reading remains.
    """

    def measure(results: Results) -> Measured:
        found, sizes = {}, []
        for second in others:
            one, other, size = _pair(results, sweep, first, second)
            told = f"range of {second} less that of {first}"
            for name, span in (("in the last half", (size.steps // 2, size.steps)), ("over all", (10, size.steps))):
                found[f"{told} {name}"] = spread_difference(_on_log_axis(other, *span), _on_log_axis(one, *span))
            sizes.append(size)
        return Measured(found, _smaller(*sizes))

    def rule(found: Measured) -> Outcome:
        told = "; ".join(f"{name}: {plain(gap)}" for name, gap in found.estimates.items()) + " reward a step"
        if len(found.estimates) < 2 * len(others):
            return Outcome(UNCLEAR, told, _lacking(others))
        readings = [positive(gap) for gap in found.estimates.values()]
        parts = [any_reading(readings[place : place + 2]) for place in range(0, len(readings), 2)]
        state = together(parts)
        if in_order and state == FAILS:
            return Outcome(OPEN, told, "the other way round; the sentence may list the three without an order")
        note = VARIANTS_DIFFER if OPEN not in parts else "it depends on the part of the curve"
        return Outcome(state, told, note if state == OPEN else "")

    return Check(measure, rule)


# Weights


def unstable_early(sweep: str, agent: str = "BBI", few: int = 1_000) -> Check:
    """Weights were unstable in some plan up to step `few`, and after it in a smaller share, under 5%.

    The paper says that instability occurs and when, and does not define it; ours is that a plain sum of exponentials
    underflows in double precision. Where that never happens the sentence is under-specified.
    """

    def measure(results: Results) -> Measured:
        frame, size = results.plans(sweep, agent), results.runs(sweep, agent).size
        mended = ((frame["resamples"] > 0) | (frame["doublings"] > 0)).to_numpy(float)
        step, run = frame["step"].to_numpy(), frame["run"].to_numpy()

        def by_run(chosen: np.ndarray) -> np.ndarray:
            return np.array([mended[chosen & (run == number)].mean() for number in np.unique(run[chosen])])

        if not (step > few).any():
            raise Missing(f"no run is longer than {few:,} steps")
        early, late = by_run(step <= few), by_run(step > few)
        return Measured({"early": bootstrap(early), "late": bootstrap(late)}, size)

    def rule(found: Measured) -> Outcome:
        early, late = found.estimates["early"], found.estimates["late"]
        told = f"share of plans with unstable weights: {early.value:.2%} up to step {few:,}, then {late.value:.2%}"
        if early.value == late.value == 0:
            return Outcome(
                OPEN,
                told,
                "no plain sum underflowed in double precision, and the paper has no other definition of unstable",
            )
        if early.value > 0 and late.high < 0.05 and late.value < early.value:
            return Outcome(HOLDS, told)
        return Outcome(FAILS if late.low >= 0.05 or late.low > early.high else UNCLEAR, told)

    return Check(measure, rule)


# Steps survived, on continuous tasks


def survival_ratio(results: Results, sweep: str, first: str, second: str, early: int | None) -> tuple[Estimate, Size]:
    """Mean steps survived of the first agent over the second's, in the first `early` steps or in the last half."""
    one, other, size = _pair(results, sweep, first, second)
    if early is not None and size.steps < early:
        early = size.steps
    span = (0, early) if early is not None else (size.steps // 2, size.steps)
    values = np.stack([runs.steps_survived(*span)[: size.runs] for runs in (one, other)])
    chosen = np.random.default_rng(0).integers(0, size.runs, (10_000, size.runs))
    ratios = values[0][chosen].mean(1) / values[1][chosen].mean(1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return Estimate(float(values[0].mean() / values[1].mean()), float(low), float(high)), size


def survives(
    sweep: str,
    pairs: Sequence[tuple[str, str]],
    low: float,
    high: float,
    early: int | None = None,
    rival: str = "GPTD",
) -> Check:
    """The ratio of steps survived lies between two numbers, for every pair of a declared set; where pairs disagree, the
    paper does not say enough. `rival` is what ours is compared with.
    """

    def measure(results: Results) -> Measured:
        found = {f"{one} over {other}": survival_ratio(results, sweep, one, other, early) for one, other in pairs}
        ours, _ = survival_ratio(results, sweep, OURS, rival, early)
        ratios = {name: ratio for name, (ratio, _) in found.items()}
        return Measured(ratios, _smaller(*(size for _, size in found.values())), ours)

    def rule(found: Measured) -> Outcome:
        when = "the last half" if early is None else f"the first {early:,} steps"
        told = "; ".join(f"{name}: {plain(ratio)}" for name, ratio in found.estimates.items())
        if len(found.estimates) < len(pairs):
            return Outcome(UNCLEAR, f"steps survived in {when}, {told}", _lacking(pairs))
        state = agreed(list(found.estimates.values()), low, high)
        note = "it depends on a choice that is not printed" if state == OPEN else ""
        return Outcome(state, f"steps survived in {when}, {told}", note)

    return Check(measure, rule)


def depends_on(sweep: str, variants: Sequence[str]) -> Check:
    """Of some variants, the best survives at least one and a half times as long as the worst in the last half."""

    def measure(results: Results) -> Measured:
        def survived(name: str) -> float:
            runs = results.runs(sweep, name)
            return float(runs.steps_survived(runs.size.steps // 2, runs.size.steps).mean())

        ordered = sorted(variants, key=survived)
        ratio, size = survival_ratio(results, sweep, ordered[-1], ordered[0], None)
        return Measured({f"{ordered[-1]} over {ordered[0]}": ratio}, size)

    def rule(found: Measured) -> Outcome:
        (name,), ratio = found.estimates, _only(found)
        return Outcome(within(ratio, 1.5, np.inf), f"steps survived in the last half, {name}: {plain(ratio)}")

    return Check(measure, rule)
