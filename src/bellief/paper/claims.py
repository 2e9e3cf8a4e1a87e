"""Claims: what the paper says of its results, as tests that can come out either way.

A test looks at the results and gives an `Outcome`: whether the sentence holds, by a statistic with a 95% bootstrap
interval over runs (or data sets), and the size it was seen at. `judge` makes a verdict of it: a claim that is seen at
less than its least size, or whose interval lies on both sides of its margin, is too small to judge; one that depends on
what the paper leaves open is under-specified.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.paper.results import Missing, Results, Runs
from bellief.paper.tasks import OURS, TASKS, Size
from bellief.plots.statistics import Estimate, bootstrap, paired_difference
from bellief.report.document import NOT_REPRODUCED, REPRODUCED, TOO_SMALL, UNDER_SPECIFIED

# "Similar" and "very small impact" mean less than this share of the best possible reward, "slightly" less than the
# second; the paper gives no numbers.
MARGIN, SLIGHT = 0.10, 0.25
HOLDS, FAILS, UNCLEAR, OPEN = "holds", "fails", "unclear", "open"


class Outcome(NamedTuple):
    """What a test found: `holds`, `fails`, `unclear` (the interval decides nothing) or `open` (the paper does not say
    enough), the number with its interval in words, and the size it was seen at.
    """

    state: str
    statistic: str
    size: Size
    note: str = ""


class Claim(NamedTuple):
    """A sentence of the paper (in our words), the item it belongs to, the least size at which it may be judged.

    >>> from bellief.paper.claims import Claim, Outcome
    >>> from bellief.paper.tasks import Size
    >>> claim = Claim("fig:x", "NChain", "It learns", Size(5, 100), lambda runs: Outcome("holds", "3.6", Size(9, 100)))
    >>> claim.test(None).state
    'holds'
    """

    item: str
    subject: str
    sentence: str
    least: Size
    test: Callable[[Results], Outcome]


class Judgement(NamedTuple):
    """A claim with its verdict."""

    claim: Claim
    verdict: str
    statistic: str
    size: Size | None
    note: str


def judge(claim: Claim, results: Results) -> Judgement:
    """The verdict on a claim.

    >>> from bellief.paper.claims import Claim, Outcome, judge
    >>> from bellief.paper.tasks import Size
    >>> claim = Claim("fig:x", "NChain", "It learns", Size(9, 100), lambda runs: Outcome("holds", "3.6", Size(5, 100)))
    >>> judge(claim, None).verdict, judge(claim._replace(least=Size(5, 100)), None).verdict
    ('too small to judge', 'reproduced')
    """
    try:
        outcome = claim.test(results)
    except Missing as missing:
        return Judgement(claim, TOO_SMALL, "", None, f"not computed: {missing}")
    size, least = outcome.size, claim.least
    if outcome.state == OPEN:
        return Judgement(claim, UNDER_SPECIFIED, outcome.statistic, size, outcome.note)
    if size.runs < least.runs or size.steps < least.steps:
        needed = f"needs at least {least.runs:,} runs of {least.steps:,} steps"
        return Judgement(claim, TOO_SMALL, outcome.statistic, size, needed)
    if outcome.state == UNCLEAR:
        note = outcome.note or "the interval decides nothing; more runs would"
        return Judgement(claim, TOO_SMALL, outcome.statistic, size, note)
    verdict = REPRODUCED if outcome.state == HOLDS else NOT_REPRODUCED
    return Judgement(claim, verdict, outcome.statistic, size, outcome.note)


# Intervals


def within(estimate: Estimate, low: float, high: float) -> str:
    """Whether an interval lies inside, outside or across a range."""
    if low <= estimate.low and estimate.high <= high:
        return HOLDS
    return FAILS if estimate.low > high or estimate.high < low else UNCLEAR


def percent(estimate: Estimate) -> str:
    """A share with its interval."""
    value, low, high = (f"{100 * number:+.1f}" for number in estimate)
    return f"{value}% [{low}, {high}]"


def plain(estimate: Estimate) -> str:
    """A number with its interval."""
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"


def _smaller(first: Size, second: Size) -> Size:
    return Size(min(first.runs, second.runs), min(first.steps, second.steps))


def _pair(results: Results, sweep: str, first: str, second: str) -> tuple[Runs, Runs, Size]:
    one, other = results.runs(sweep, first), results.runs(sweep, second)
    return one, other, _smaller(one.size, other.size)


def relative_difference(results: Results, sweep: str, first: str, second: str) -> tuple[Estimate, Size]:
    """Reward per step of the first agent less the second's, run by run, in the last half of the shorter length, as a
    share of the best possible.
    """
    one, other, size = _pair(results, sweep, first, second)
    optimum = results.optimum(sweep)
    assert optimum is not None
    span = (size.steps // 2, size.steps)
    gap = one.reward(*span)[: size.runs] - other.reward(*span)[: size.runs]
    return bootstrap(gap / optimum), size


# Tests of the discrete figures


def similar(sweep: str, first: str, second: str) -> Callable[[Results], Outcome]:
    """Less than `MARGIN` of the best possible reward apart."""

    def test(results: Results) -> Outcome:
        gap, size = relative_difference(results, sweep, first, second)
        state = within(gap, -MARGIN, MARGIN)
        note = "" if state != FAILS else f"{first} is {'ahead' if gap.value > 0 else 'behind'}"
        return Outcome(state, f"{first} less {second}: {percent(gap)} of the optimum", size, note)

    return test


def slightly_worse(sweep: str, first: str, second: str) -> Callable[[Results], Outcome]:
    """Worse, but by less than `SLIGHT`."""

    def test(results: Results) -> Outcome:
        gap, size = relative_difference(results, sweep, first, second)
        state = within(gap, -SLIGHT, 0.0)
        note = "" if state != FAILS else ("it is better" if gap.value > 0 else "it is much worse")
        return Outcome(state, f"{first} less {second}: {percent(gap)} of the optimum", size, note)

    return test


def unsatisfactory(sweep: str, agent: str) -> Callable[[Results], Outcome]:
    """More than `MARGIN` of the best possible reward below the best of BBI, MMBI and PSRL over the same steps."""

    def test(results: Results) -> Outcome:
        gaps = {other: relative_difference(results, sweep, agent, other) for other in ("BBI", "MMBI", "PSRL")}
        best = min(gaps, key=lambda other: gaps[other][0].value)
        gap, size = gaps[best]
        state = within(gap, -np.inf, -MARGIN)
        return Outcome(state, f"{agent} less {best}, the best of the three: {percent(gap)} of the optimum", size)

    return test


def ahead(sweep: str, first: str, second: str) -> Callable[[Results], Outcome]:
    """More reward, by an interval that leaves zero out."""

    def test(results: Results) -> Outcome:
        gap, size = relative_difference(results, sweep, first, second)
        return Outcome(_positive(gap), f"{first} less {second}: {percent(gap)} of the optimum", size)

    return test


def _positive(estimate: Estimate) -> str:
    return HOLDS if estimate.low > 0 else FAILS if estimate.high <= 0 else UNCLEAR


def percentile_range(values: Float[np.ndarray, "... runs g"]) -> Float[np.ndarray, "..."]:
    """From the 5th to the 95th percentile over runs, averaged over readings."""
    low, high = np.quantile(values, [0.05, 0.95], axis=-2)
    return np.mean(high - low, axis=-1)


def spread_difference(one: np.ndarray, other: np.ndarray, resamples: int = 1_000) -> Estimate:
    """Percentile range of the first less the second's, each resampled over its own runs."""
    rng = np.random.default_rng(0)

    def resampled(values: np.ndarray) -> np.ndarray:
        chosen = rng.integers(0, len(values), (resamples, len(values)))
        return percentile_range(values[chosen])

    gaps = resampled(one) - resampled(other)
    low, high = np.quantile(gaps, [0.025, 0.975])
    return Estimate(float(percentile_range(one) - percentile_range(other)), float(low), float(high))


def steadier(sweep: str, first: str, second: str) -> Callable[[Results], Outcome]:
    """A smaller range from the 5th to the 95th percentile of runs, in the last half of the shorter length."""

    def test(results: Results) -> Outcome:
        one, other, size = _pair(results, sweep, first, second)
        span = (size.steps // 2, size.steps)
        gap = spread_difference(other.spread(*span), one.spread(*span))
        told = f"range of {second} less that of {first}: {plain(gap)} reward a step"
        return Outcome(_positive(gap), told, size)

    return test


def little_effect(sweep: str, agents: list[str], base: str) -> Callable[[Results], Outcome]:
    """Every agent of a list within `MARGIN` of the base; the worst decides."""

    def test(results: Results) -> Outcome:
        found = {agent: relative_difference(results, sweep, agent, base) for agent in agents if agent != base}
        states = [within(gap, -MARGIN, MARGIN) for gap, _ in found.values()]
        worst = max(found, key=lambda agent: abs(found[agent][0].value))
        gap, size = found[worst]
        state = FAILS if FAILS in states else UNCLEAR if UNCLEAR in states else HOLDS
        return Outcome(state, f"largest difference, {worst} less {base}: {percent(gap)} of the optimum", size)

    return test


def no_significant_difference(sweep: str, agents: list[str]) -> Callable[[Results], Outcome]:
    """No pair of a list apart by an interval that leaves zero out (with Bonferroni's correction)."""

    def test(results: Results) -> Outcome:
        pairs = [(one, other) for place, one in enumerate(agents) for other in agents[place + 1 :]]
        optimum, told = results.optimum(sweep), []
        assert optimum is not None
        state, size = HOLDS, Size(2**31, 2**31)
        for one, other in pairs:
            first, second, both = _pair(results, sweep, one, other)
            span = (both.steps // 2, both.steps)
            rows = slice(0, both.runs)
            level = 1 - 0.05 / len(pairs)
            gap = paired_difference(
                first.reward(*span)[rows] / optimum, second.reward(*span)[rows] / optimum, level=level
            )
            size = _smaller(size, both)
            told.append(f"{one.split(', ')[-1]} less {other.split(', ')[-1]}: {percent(gap)}")
            if gap.low > 0 or gap.high < 0:
                state = FAILS
        return Outcome(state, "; ".join(told) + " of the optimum", size)

    return test


def unstable_only_early(sweep: str, agent: str = "BBI", few: int = 1_000) -> Callable[[Results], Outcome]:
    """Weights had to be mended in a smaller share of the plans after `few` steps than before, and in under 5%."""

    def test(results: Results) -> Outcome:
        frame, size = results.plans(sweep, agent), results.runs(sweep, agent).size
        mended = ((frame["resamples"] > 0) | (frame["doublings"] > 0)).to_numpy(float)
        step, run = frame["step"].to_numpy(), frame["run"].to_numpy()
        late = np.array([mended[(step > few) & (run == number)].mean() for number in np.unique(run[step > few])])
        early = mended[step <= few].mean()
        if not len(late):
            return Outcome(UNCLEAR, f"before step {few:,}: {early:.1%} of the plans", size)
        share = bootstrap(late)
        state = HOLDS if share.high < 0.05 else FAILS if share.low >= 0.05 else UNCLEAR
        told = f"plans with mended weights: {early:.1%} up to step {few:,}, then {percent(share).replace('+', '')}"
        note = "" if early or late.any() else "in logarithms, as we compute them, they never were"
        return Outcome(state, told, size, note)

    return test


# Tests of the continuous figures, by steps survived


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
    sweep: str, first: str, second: str, low: float, high: float, early: int | None = None
) -> Callable[[Results], Outcome]:
    """The ratio of steps survived lies between two numbers."""

    def test(results: Results) -> Outcome:
        ratio, size = survival_ratio(results, sweep, first, second, early)
        when = "the last half" if early is None else f"the first {early:,} steps"
        rival = second if first == "BBI" else first
        ours, _ = survival_ratio(results, sweep, OURS, rival, early)
        note = f"ours over {rival}: {plain(ours)}"
        told = f"steps survived, {first} over {second}, in {when}: {plain(ratio)}"
        return Outcome(within(ratio, low, high), told, size, note)

    return test


def title_of(sweep: str) -> str:
    """The paper's name of a sweep's task."""
    return TASKS[sweep].title
