"""Tests of what the paper says of value posteriors, their distances to the truth, and the Bayes bounds."""

import itertools
from collections.abc import Callable

import numpy as np

from bellief.paper.claims import FAILS, HOLDS, OPEN, UNCLEAR, Outcome, percent, plain, within
from bellief.paper.computations import READINGS, SIZES
from bellief.paper.results import Results
from bellief.paper.tasks import Size
from bellief.plots.statistics import Estimate, bootstrap, paired_difference

# The paper's table: distance of induction and of the mean MDP.
PRINTED = {10: (22.80, 30.69), 100: (16.41, 17.90), 1000: (4.18, 4.27)}
INDUCTION, MEAN_MDP = "inferential induction", "mean MDP"


def worst(states: list[str]) -> str:
    """Of several parts that must all hold."""
    return FAILS if FAILS in states else UNCLEAR if UNCLEAR in states else HOLDS


def _distances(results: Results, reading: str) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    found = results.computed("wasserstein")
    return {steps: (found[f"{reading}/{steps}/{INDUCTION}"], found[f"{reading}/{steps}/{MEAN_MDP}"]) for steps in SIZES}


def _seen(values: np.ndarray) -> Size:
    return Size(len(values), max(SIZES))


def distance_falls(reading: str) -> Callable[[Results], Outcome]:
    """The mean distance after 10, 100 and 1,000 steps falls each time."""

    def test(results: Results) -> Outcome:
        induction = {steps: pair[0] for steps, pair in _distances(results, reading).items()}
        falls = [paired_difference(induction[before], induction[after]) for before, after in itertools.pairwise(SIZES)]
        states = [HOLDS if fall.low > 0 else FAILS if fall.high <= 0 else UNCLEAR for fall in falls]
        means = ", ".join(f"{steps:,}: {plain(bootstrap(values))}" for steps, values in induction.items())
        return Outcome(worst(states), f"distance by steps, {means}", _seen(induction[10]))

    return test


def closer_than_mean(reading: str) -> Callable[[Results], Outcome]:
    """Induction lies closer to the truth than the mean MDP after 10, 100 and 1,000 steps."""

    def test(results: Results) -> Outcome:
        pairs = _distances(results, reading)
        ratios = {steps: _ratio(*pair) for steps, pair in pairs.items()}
        states = [HOLDS if one.high < 1 else FAILS if one.low >= 1 else UNCLEAR for one in ratios.values()]
        told = ", ".join(f"{steps:,}: {plain(one)}" for steps, one in ratios.items())
        printed = ", ".join(f"{first / second:.2f}" for first, second in PRINTED.values())
        return Outcome(
            worst(states), f"distance over the mean MDP's, {told}", _seen(pairs[10][0]), f"printed: {printed}"
        )

    return test


def _ratio(first: np.ndarray, second: np.ndarray) -> Estimate:
    chosen = np.random.default_rng(0).integers(0, len(first), (10_000, len(first)))
    low, high = np.quantile(first[chosen].mean(1) / second[chosen].mean(1), [0.025, 0.975])
    return Estimate(float(first.mean() / second.mean()), float(low), float(high))


def printed_distances(results: Results) -> Outcome:
    """The printed numbers depend on the one data set, which reading of the policy made it, and how states were
    averaged; none of these is printed. Told is the range over data sets, so that a reader can see what is compatible.
    """
    told = []
    for reading in READINGS:
        parts = []
        for steps, pair in _distances(results, reading).items():
            low, high = np.quantile(pair[0], [0.025, 0.975])
            inside = "in" if low <= PRINTED[steps][0] <= high else "not in"
            parts.append(f"{steps:,}: {PRINTED[steps][0]} {inside} [{low:.2f}, {high:.2f}]")
        told.append(f"{reading}: {', '.join(parts)}")
    size = _seen(_distances(results, "back-heavy")[10][0])
    return Outcome(OPEN, "; ".join(told), size, "range of our data sets; data set, policy and norm are not printed")


def captures_uncertainty(reading: str) -> Callable[[Results], Outcome]:
    """The spread of induction's value of the start state lies between half and twice the true posterior's."""

    def test(results: Results) -> Outcome:
        found, states, told = results.computed("posteriors"), [], []
        for steps in SIZES:
            truth = _width(found[f"{reading}/{steps}/truth"])
            ratio = bootstrap(_width(found[f"{reading}/{steps}/induction"]) / truth)
            states.append(within(ratio, 0.5, 2.0))
            ours = _width(found[f"{reading}/{steps}/joint"]) / truth
            told.append(f"{steps:,}: {plain(ratio)} (ours {ours:.2f})")
        runs = len(found[f"{reading}/10/induction"])
        return Outcome(worst(states), f"spread over the truth's, {', '.join(told)}", Size(runs, max(SIZES)))

    return test


def _width(samples: np.ndarray) -> np.ndarray:
    low, high = np.quantile(samples, [0.05, 0.95], axis=-1)
    return high - low


def bound_approached(kind: str = "") -> Callable[[Results], Outcome]:
    """The gap between bound and value, as a share of the bound, is smaller at the end than around step 100."""

    def test(results: Results) -> Outcome:
        found = results.computed("bounds")
        step, bound, value = found["BBI/step"], found[f"BBI/bound{kind}"], found[f"BBI/policy{kind}"]
        gap = 1 - value / bound
        early, late = gap[:, np.searchsorted(step, min(100, step[-2]))], gap[:, -1]
        fall = paired_difference(early, late)
        state = HOLDS if fall.low > 0 else FAILS if fall.high <= 0 else UNCLEAR
        ours = 1 - found[f"BBI (ours)/policy{kind}"][:, -1] / found[f"BBI (ours)/bound{kind}"][:, -1]
        told = f"gap {early.mean():.1%} near step 100, {late.mean():.1%} at the end; fell by {percent(fall)}"
        return Outcome(state, told, Size(len(gap), int(step[-1])), f"ours at the end: {ours.mean():.1%}")

    return test
