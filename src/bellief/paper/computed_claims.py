"""Tests of what the paper says of value posteriors, their distances to the truth, the Bayes bounds, and beside them."""

import itertools
from collections.abc import Callable

import numpy as np

from bellief.paper.agents import OURS
from bellief.paper.claims import OPEN, Check, Measured, Outcome, percent, plain, positive, within, worst
from bellief.paper.computations import READINGS, SIZES
from bellief.paper.computed_results import Results
from bellief.paper.identities import STATE_DISTRIBUTIONS
from bellief.paper.tasks import Size
from bellief.plots.statistics import Estimate, bootstrap, paired_difference

# The paper's table: distance of induction and of the mean MDP.
PRINTED = {10: (22.80, 30.69), 100: (16.41, 17.90), 1000: (4.18, 4.27)}
INDUCTION, MEAN_MDP = "inferential induction", "mean MDP"


def _listed(found: Measured, show: Callable[[Estimate], str] = plain) -> str:
    return ", ".join(f"{name}: {show(one)}" for name, one in found.estimates.items())


def _distances(results: Results, reading: str) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    found = results.computed("wasserstein")
    return {steps: (found[f"{reading}/{steps}/{INDUCTION}"], found[f"{reading}/{steps}/{MEAN_MDP}"]) for steps in SIZES}


def _seen(values: np.ndarray) -> Size:
    return Size(len(values), max(SIZES))


def distance_falls(reading: str) -> Check:
    """The mean distance after 10, 100 and 1,000 steps falls each time."""

    def measure(results: Results) -> Measured:
        induction = {steps: pair[0] for steps, pair in _distances(results, reading).items()}
        falls = {
            f"from {before:,} to {after:,} steps": paired_difference(induction[before], induction[after])
            for before, after in itertools.pairwise(SIZES)
        }
        return Measured(falls, _seen(induction[10]))

    def rule(found: Measured) -> Outcome:
        states = [positive(fall) for fall in found.estimates.values()]
        return Outcome(worst(states), f"the distance falls, {_listed(found)}")

    return Check(measure, rule)


def _printed_distances() -> Check:
    """The printed numbers depend on the one data set, which reading of the policy made it, and how states were
    averaged; none of these is printed. Told is the range over data sets, so that a reader can see what is compatible,
    and the ratio of the two columns.
    """

    def measure(results: Results) -> Measured:
        found = {}
        for reading in READINGS:
            for steps, (induction, mean) in _distances(results, reading).items():
                low, high = np.quantile(induction, [0.025, 0.975])
                found[f"{reading}, {steps:,}"] = Estimate(float(np.median(induction)), float(low), float(high))
                found[f"{reading}, {steps:,}, over the mean MDP's"] = _ratio(induction, mean)
        return Measured(found, _seen(_distances(results, "back-heavy")[10][0]))

    def rule(found: Measured) -> Outcome:
        printed = ", ".join(f"{steps:,}: {one} ({one / mean:.2f})" for steps, (one, mean) in PRINTED.items())
        note = f"printed {printed}; data set, policy and norm are not; median and range over our data sets"
        return Outcome(OPEN, _listed(found), note)

    return Check(measure, rule)


printed_distances = _printed_distances()


def _ratio(first: np.ndarray, second: np.ndarray) -> Estimate:
    chosen = np.random.default_rng(0).integers(0, len(first), (10_000, len(first)))
    low, high = np.quantile(first[chosen].mean(1) / second[chosen].mean(1), [0.025, 0.975])
    return Estimate(float(first.mean() / second.mean()), float(low), float(high))


def captures_uncertainty(reading: str) -> Check:
    """The spread of induction's value of the start state lies between half and twice the true posterior's."""

    def measure(results: Results) -> Measured:
        found, ratios, ours = results.computed("posteriors"), {}, []
        for steps in SIZES:
            truth = _width(found[f"{reading}/{steps}/truth"])
            ratios[f"{steps:,}"] = bootstrap(_width(found[f"{reading}/{steps}/induction"]) / truth)
            ours.append(float(_width(found[f"{reading}/{steps}/joint"]) / truth))
        runs = len(found[f"{reading}/10/induction"])
        return Measured(ratios, Size(runs, max(SIZES)), Estimate(float(np.median(ours)), min(ours), max(ours)))

    def rule(found: Measured) -> Outcome:
        states = [within(ratio, 0.5, 2.0) for ratio in found.estimates.values()]
        return Outcome(worst(states), f"spread over the truth's by steps, {_listed(found)}")

    return Check(measure, rule)


def _width(samples: np.ndarray) -> np.ndarray:
    low, high = np.quantile(samples, [0.05, 0.95], axis=-1)
    return high - low


def bound_approached(kind: str = "") -> Check:
    """The gap between bound and value, as a share of the bound, is smaller at the end than around step 100."""

    def measure(results: Results) -> Measured:
        found = results.computed("bounds")
        step, bound, value = found["BBI/step"], found[f"BBI/bound{kind}"], found[f"BBI/policy{kind}"]
        gap = 1 - value / bound
        early, late = gap[:, np.searchsorted(step, min(100, step[-2]))], gap[:, -1]
        ours = 1 - found[f"{OURS}/policy{kind}"][:, -1] / found[f"{OURS}/bound{kind}"][:, -1]
        measured = {
            "near step 100": bootstrap(early),
            "at the end": bootstrap(late),
            "fall": paired_difference(early, late),
        }
        return Measured(measured, Size(len(gap), int(step[-1])), bootstrap(ours))

    def rule(found: Measured) -> Outcome:
        return Outcome(positive(found.estimates["fall"]), f"gap as a share of the bound, {_listed(found, percent)}")

    return Check(measure, rule)


# What is said beside the figures


def any_distribution(reading: str) -> Check:
    """With any q the mean value of the start state stays within a tenth of the posterior's standard deviation of what
    it is with a uniform q.
    """

    def measure(results: Results) -> Measured:
        found, gaps = results.computed("identities"), {}
        for name in STATE_DISTRIBUTIONS:
            if name != "uniform":
                apart = [
                    np.abs(found[f"{reading}/{steps}/{name}"][:, 0] - found[f"{reading}/{steps}/uniform"][:, 0])
                    / found[f"{reading}/{steps}/truth"][:, 1]
                    for steps in SIZES
                ]
                gaps[name] = bootstrap(np.mean(apart, axis=0))
        return Measured(gaps, _seen(found[f"{reading}/10/truth"]))

    def rule(found: Measured) -> Outcome:
        states = [within(gap, 0.0, 0.1) for gap in found.estimates.values()]
        return Outcome(worst(states), f"difference to a uniform q in standard deviations, {_listed(found)}")

    return Check(measure, rule)


def mean_field_is_mean_mdp(reading: str) -> Check:
    """Mean-field's mean is the mean MDP's value, within a tenth of the posterior's standard deviation, and its spread
    is less than half of the posterior's.
    """

    def measure(results: Results) -> Measured:
        found, gaps, spreads = results.computed("identities"), [], []
        for steps in SIZES:
            place = f"{reading}/{steps}"
            truth, field, mean = (found[f"{place}/{name}"] for name in ("truth", "mean-field", "mean MDP"))
            gaps.append(np.abs(field[:, 0] - mean[:, 0]) / truth[:, 1])
            spreads.append(field[:, 1] / truth[:, 1])
        size = _seen(gaps[0])
        measured = {
            "difference of means": bootstrap(np.mean(gaps, axis=0)),
            "spread": bootstrap(np.mean(spreads, axis=0)),
        }
        return Measured(measured, size)

    def rule(found: Measured) -> Outcome:
        states = [
            within(found.estimates["difference of means"], 0.0, 0.1),
            within(found.estimates["spread"], 0.0, 0.5),
        ]
        return Outcome(worst(states), f"in standard deviations of the posterior, {_listed(found)}")

    return Check(measure, rule)


def _one_sample() -> Check:
    """With one sample MMBI acts as PSRL does, and loses less than 1% of the value where it does not: the horizon of 100
    steps is what remains.
    """

    def measure(results: Results) -> Measured:
        found = results.computed("identities")
        same, lost = found["one sample/same"], found["one sample/lost"]
        return Measured({"same actions": bootstrap(same), "value lost": bootstrap(lost)}, _seen(same))

    def rule(found: Measured) -> Outcome:
        states = [
            within(found.estimates["same actions"], 0.95, 1.0),
            within(found.estimates["value lost"], -1e-4, 0.01),
        ]
        return Outcome(worst(states), f"over MDPs from the posterior, {_listed(found, percent)}")

    return Check(measure, rule)


one_sample = _one_sample()


def _less_memory() -> Check:
    """A tree of beliefs holds more than ten times the numbers that a step of BBI keeps."""

    def measure(results: Results) -> Measured:
        found = results.computed("identities")
        beliefs, kept = found["memory/beliefs"], float(found["memory/kept"])
        depth = len(beliefs) - 1
        ratio = float(beliefs[-1]) / kept
        return Measured(
            {f"beliefs {depth} steps ahead over BBI's numbers": Estimate(ratio, ratio, ratio)}, Size(1, depth)
        )

    def rule(found: Measured) -> Outcome:
        (ratio,) = found.estimates.values()
        note = "BBI's numbers do not grow with the horizon; BSS as the paper runs it holds 256 nodes, fewer than BBI"
        return Outcome(within(ratio, 10.0, np.inf), _listed(found), note)

    return Check(measure, rule)


less_memory = _less_memory()
