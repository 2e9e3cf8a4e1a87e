"""Verdicts on synthetic results, for which the right one is known."""

import numpy as np
import pandas as pd
import pytest

from bellief.paper import claims, computed_claims, sweep_claims
from bellief.paper.agents import OURS
from bellief.paper.claims import Check, Claim, Measured, Outcome, judge
from bellief.paper.computed_results import Missing, Results, Runs
from bellief.paper.tasks import Size
from bellief.report.document import NOT_REPRODUCED, REPRODUCED, TOO_SMALL, UNDER_SPECIFIED

STEPS = np.array([10, 100, 500, 1_000])
LEAST = Size(10, 1_000)


def make_runs(reward, spread=0.0, runs=20, steps=STEPS, seed=0):
    """Runs that earn `reward` a step, each with an offset of its own."""
    offset = spread * np.random.default_rng(seed).standard_normal(runs)
    rate = reward + offset
    smoothed = np.repeat(rate[:, None], len(steps), 1)
    return Runs(steps, rate[:, None] * steps, smoothed)


def make_episodes(length, runs=20, steps=STEPS):
    """Runs whose episodes all have one length."""
    over = np.repeat((steps // length)[None], runs, 0)
    zeros = np.zeros(over.shape)
    return Runs(steps, zeros, zeros, zeros + length, over, over * length)


def make_results(agents=(), plans=None, computed=None, optimum=1.0):
    agents = dict(agents)

    def runs(sweep, agent):
        if agent not in agents:
            raise Missing(f"{agent} in {sweep} was not run")
        return agents[agent]

    return Results(
        runs, lambda sweep, agent: plans, lambda sweep: optimum, lambda name: computed, lambda sweep: [*agents]
    )


def verdict(test, results, least=LEAST):
    return judge(Claim("fig:x", "task", "sentence", least, test, "similar"), results).verdict


SIMILAR = sweep_claims.similar("nchain", "BBI", "PSRL")


@pytest.mark.parametrize(
    ("bbi", "expected"),
    [
        (make_runs(0.95, 0.02), REPRODUCED),
        (make_runs(0.5, 0.02), NOT_REPRODUCED),
        (make_runs(1.5, 0.02), NOT_REPRODUCED),
        (make_runs(0.9, 0.3), TOO_SMALL),  # the interval reaches over the margin
        (make_runs(0.95, 0.02, runs=5), TOO_SMALL),
        (make_runs(0.95, 0.02, steps=np.array([10, 250, 500])), TOO_SMALL),  # readings are there, but too early
    ],
)
def test_similar(bbi, expected):
    other = make_runs(1.0, steps=bbi.step)
    judged = judge(
        Claim("fig:x", "task", "sentence", LEAST, SIMILAR, "similar"), make_results({"BBI": bbi, "PSRL": other})
    )
    assert judged.verdict == expected
    assert "not computed" not in judged.note


@pytest.mark.parametrize(("reward", "expected"), [(0.5, NOT_REPRODUCED), (0.95, REPRODUCED), (1.5, REPRODUCED)])
def test_competitive_is_not_behind(reward, expected):
    test = sweep_claims.not_behind("nchain", "BBI", "PSRL")
    results = make_results({"BBI": make_runs(reward, 0.02), "PSRL": make_runs(1.0)})
    assert judge(Claim("fig:x", "task", "sentence", LEAST, test, "competitive"), results).verdict == expected


def test_what_was_not_computed_is_too_small_and_says_so():
    judged = judge(Claim("fig:x", "task", "sentence", LEAST, SIMILAR, "similar"), make_results({"BBI": make_runs(1.0)}))
    assert judged.verdict == TOO_SMALL
    assert "PSRL in nchain was not run" in judged.note


def test_under_specified():
    test = Check(lambda results: Measured({}, Size(10, 1_000)), lambda found: Outcome(claims.OPEN, "1"))
    assert verdict(test, make_results()) == UNDER_SPECIFIED


@pytest.mark.parametrize(("bss", "expected"), [(0.9, REPRODUCED), (0.5, NOT_REPRODUCED), (1.1, NOT_REPRODUCED)])
def test_slightly_worse(bss, expected):
    results = make_results({"BSS": make_runs(bss, 0.01), "BBI": make_runs(1.0)})
    assert verdict(sweep_claims.slightly_worse("nchain", "BSS", "BBI"), results) == expected


def test_slightly_worse_at_the_end_of_a_longer_curve():
    """After 1,000 steps BBI earns less than BSS, and later more: the figure shows one, equal steps the other."""
    steps = np.array([10, 100, 500, 1_000, 50_000, 100_000])
    rate = np.array([0.5, 0.5, 0.5, 0.5, 1.0, 1.0])
    total = np.cumsum(rate * np.diff(steps, prepend=0))
    bbi = Runs(steps, np.tile(total, (20, 1)), np.tile(rate, (20, 1)))
    results = make_results({"BSS": make_runs(0.9, 0.01), "BBI": bbi})
    assert verdict(sweep_claims.slightly_worse("nchain", "BSS", "BBI"), results) == UNDER_SPECIFIED


def test_unsatisfactory_is_measured_against_the_best_of_three():
    agents = {"BBI": make_runs(0.5), "MMBI": make_runs(1.0), "PSRL": make_runs(0.4)}
    test = sweep_claims.unsatisfactory("nchain", ["VDQN"])
    assert verdict(test, make_results(agents | {"VDQN": make_runs(0.6, 0.01)})) == REPRODUCED
    assert verdict(test, make_results(agents | {"VDQN": make_runs(0.97, 0.01)})) == NOT_REPRODUCED


def test_ahead():
    test = sweep_claims.ahead("nchain", "BBI", "VDQN")
    assert verdict(test, make_results({"BBI": make_runs(1.0, 0.01), "VDQN": make_runs(0.9)})) == REPRODUCED
    assert verdict(test, make_results({"BBI": make_runs(0.9, 0.01), "VDQN": make_runs(1.0)})) == NOT_REPRODUCED
    assert verdict(test, make_results({"BBI": make_runs(1.0, 0.2, seed=3), "VDQN": make_runs(1.0)})) == TOO_SMALL


def test_steadier_compares_percentile_ranges():
    test = sweep_claims.steadier("nchain", "BSS", "BBI")
    calm, wild = make_runs(1.0, 0.01), make_runs(1.0, 0.5, seed=1)
    assert verdict(test, make_results({"BSS": calm, "BBI": wild})) == REPRODUCED
    assert verdict(test, make_results({"BSS": wild, "BBI": calm})) == NOT_REPRODUCED
    assert verdict(test, make_results({"BSS": wild, "BBI": make_runs(1.0, 0.5, seed=2)})) == TOO_SMALL


def test_steadier_in_one_part_of_the_curve_only():
    early = make_runs(1.0, 0.5, seed=1)
    early.smoothed[:, 2:] = 1.0 + 0.001 * early.smoothed[:, 2:]  # wild at first, calm in the last half
    middle = make_runs(1.0, 0.05, seed=2)
    test = sweep_claims.steadier("nchain", "VDQN", "BBI")
    assert verdict(test, make_results({"VDQN": early, "BBI": middle})) == UNDER_SPECIFIED


def test_a_failure_on_a_task_that_is_not_printed_is_under_specified():
    results = make_results({"BBI": make_runs(0.5, 0.02), "PSRL": make_runs(1.0)})
    claim = Claim("fig:x", "task", "sentence", LEAST, SIMILAR, "similar", "the layout is not printed")
    judged = judge(claim, results)
    assert (judged.verdict, "layout" in judged.note) == (UNDER_SPECIFIED, True)
    assert judge(claim._replace(unprinted=""), results).verdict == NOT_REPRODUCED


def test_percentile_range_is_that_of_numpy():
    values = np.random.default_rng(0).standard_normal((30, 4))
    expected = np.mean(np.percentile(values, 95, axis=0) - np.percentile(values, 5, axis=0))
    assert sweep_claims.percentile_range(values) == pytest.approx(expected)


def test_little_effect_is_decided_by_the_worst():
    agents = {"H10": make_runs(0.99, 0.01), "H20": make_runs(0.7, 0.01), "H100": make_runs(1.0)}
    assert verdict(sweep_claims.little_effect("nchain", [*agents], "H100"), make_results(agents)) == NOT_REPRODUCED
    assert verdict(sweep_claims.little_effect("nchain", ["H10", "H100"], "H100"), make_results(agents)) == REPRODUCED


def test_no_significant_difference():
    names = ["BBI, formula 1", "BBI, formula 2"]
    test = sweep_claims.no_significant_difference("nchain", names)
    same = make_results({names[0]: make_runs(1.0, 0.1), names[1]: make_runs(1.0, 0.1, seed=5)})
    apart = make_results({names[0]: make_runs(1.0, 0.01), names[1]: make_runs(0.9, 0.01, seed=5)})
    assert verdict(test, same) == REPRODUCED
    assert verdict(test, apart) == NOT_REPRODUCED


def test_no_difference_found_by_too_few_runs_decides_nothing():
    names = ["BBI, formula 1", "BBI, formula 2"]
    results = make_results({names[0]: make_runs(1.0, 0.9), names[1]: make_runs(1.0, 0.9, seed=5)})
    assert verdict(sweep_claims.no_significant_difference("nchain", names), results) == TOO_SMALL


def test_variants_that_disagree_leave_a_claim_open():
    agents = {"BBI": make_runs(1.0), "MMBI": make_runs(1.0), "PSRL": make_runs(1.0)}
    agents |= {"BQL": make_runs(1.0, 0.01), "BQL, other": make_runs(0.5, 0.01)}
    test = sweep_claims.unsatisfactory("doubleloop", ["BQL", "BQL, other"])
    assert verdict(test, make_results(agents)) == UNDER_SPECIFIED
    assert verdict(test, make_results(agents | {"BQL": make_runs(0.6, 0.01)})) == REPRODUCED
    assert verdict(test, make_results(agents | {"BQL, other": make_runs(1.0, 0.01)})) == NOT_REPRODUCED


def test_the_order_of_a_list_is_one_reading():
    calm, wild = make_runs(1.0, 0.01), make_runs(1.0, 0.5, seed=1)
    test = sweep_claims.steadier("nchain", "BBI", "MMBI", in_order=True)
    assert verdict(test, make_results({"BBI": calm, "MMBI": wild})) == REPRODUCED
    assert verdict(test, make_results({"BBI": wild, "MMBI": calm})) == UNDER_SPECIFIED


@pytest.mark.parametrize(
    ("early", "late", "expected"),
    [
        (1, 0, REPRODUCED),
        (1, 1, NOT_REPRODUCED),
        (0, 1, NOT_REPRODUCED),
        (0, 0, UNDER_SPECIFIED),  # nothing happened that the sentence could be about
    ],
)
def test_unstable_early(early, late, expected):
    steps = np.tile([1, 100, 900, 2_000, 5_000, 9_000], 20)
    plans = pd.DataFrame({"run": np.repeat(np.arange(20), 6), "step": steps, "doublings": 0})
    plans["resamples"] = np.where(steps <= 100, early, late)
    results = make_results({"BBI": make_runs(1.0)}, plans)
    assert verdict(sweep_claims.unstable_early("nchain"), results) == expected


def test_a_choice_that_matters():
    agents = {"BBI": make_episodes(10), "BBI, q = history": make_episodes(50)}
    assert verdict(sweep_claims.depends_on("pendulum", [*agents]), make_results(agents)) == REPRODUCED
    agents["BBI, q = history"] = make_episodes(10)
    assert verdict(sweep_claims.depends_on("pendulum", [*agents]), make_results(agents)) == NOT_REPRODUCED


def test_steps_survived_and_their_ratio():
    agents = {"BBI": make_episodes(50), "GPTD": make_episodes(10), OURS: make_episodes(100)}
    assert agents["BBI"].steps_survived(500, 1_000) == pytest.approx(50)
    test = sweep_claims.survives("pendulum", [("BBI", "GPTD")], 1.5, float("inf"))
    assert verdict(test, make_results(agents)) == REPRODUCED
    assert verdict(test, make_results(agents | {"BBI": make_episodes(5)})) == NOT_REPRODUCED


def test_an_episode_that_never_ends_counts_as_it_stands():
    runs = make_episodes(5_000)
    assert runs.steps_survived(500, 1_000) == pytest.approx(1_000)


def distances(induction, mean):
    rng = np.random.default_rng(0)
    found = {}
    for reading in ("back-heavy", "forward-heavy"):
        for steps, one, other in zip((10, 100, 1000), induction, mean, strict=True):
            luck = rng.standard_normal(20)
            found[f"{reading}/{steps}/inferential induction"] = one + luck
            found[f"{reading}/{steps}/mean MDP"] = other + luck
    return make_results(computed=found)


def test_distances():
    falling, rising = distances((30, 20, 10), (40, 30, 20)), distances((10, 20, 30), (5, 10, 15))
    falls = computed_claims.distance_falls("back-heavy")
    assert [verdict(falls, results) for results in (falling, rising)] == [REPRODUCED, NOT_REPRODUCED]
    assert verdict(computed_claims.printed_distances, falling) == UNDER_SPECIFIED


@pytest.mark.parametrize(("width", "expected"), [(1.0, REPRODUCED), (0.1, NOT_REPRODUCED)])
def test_uncertainty(width, expected):
    rng = np.random.default_rng(0)
    found = {}
    for steps in (10, 100, 1000):
        place = f"back-heavy/{steps}"
        found |= {f"{place}/{name}": rng.standard_normal(1_000) for name in ("truth", "joint")}
        found[f"{place}/induction"] = width * rng.standard_normal((5, 1_000))
    test = computed_claims.captures_uncertainty("back-heavy")
    assert verdict(test, make_results(computed=found), Size(5, 1_000)) == expected


@pytest.mark.parametrize(("end", "expected"), [(99.0, REPRODUCED), (10.0, NOT_REPRODUCED)])
def test_bounds(end, expected):
    step = np.array([1, 100, 1_000])
    bound = np.full((20, 3), 100.0)
    value = np.tile([10.0, 50.0, end], (20, 1)) + np.random.default_rng(0).standard_normal((20, 1))
    found = {"BBI/step": step}
    for agent in ("BBI", "BBI (ours)"):
        found |= {f"{agent}/bound": bound, f"{agent}/policy": value}
    assert verdict(computed_claims.bound_approached(), make_results(computed=found)) == expected


def identities(mean_field, spread, other=50.0):
    found = {}
    for steps in (10, 100, 1000):
        place = f"back-heavy/{steps}"
        rows = {
            "truth": (50.0, 10.0),
            "mean MDP": (50.0, 0.0),
            "mean-field": (mean_field, spread),
            "uniform": (50.0, 1),
        }
        rows |= dict.fromkeys(("mostly the first", "mostly the last", "halving"), (other, 1.0))
        found |= {f"{place}/{name}": np.tile(row, (20, 1)) for name, row in rows.items()}
    return make_results(computed=found)


@pytest.mark.parametrize(
    ("mean_field", "spread", "expected"),
    [(50.0, 1.0, REPRODUCED), (60.0, 1.0, NOT_REPRODUCED), (50.0, 9.0, NOT_REPRODUCED)],
)
def test_mean_field(mean_field, spread, expected):
    test = computed_claims.mean_field_is_mean_mdp("back-heavy")
    assert verdict(test, identities(mean_field, spread)) == expected


@pytest.mark.parametrize(("other", "expected"), [(50.1, REPRODUCED), (55.0, NOT_REPRODUCED)])
def test_any_distribution(other, expected):
    assert verdict(computed_claims.any_distribution("back-heavy"), identities(50.0, 1.0, other)) == expected


def test_one_sample_and_memory():
    same = {"one sample/same": np.ones(20), "one sample/lost": np.zeros(20)}
    assert verdict(computed_claims.one_sample, make_results(computed=same)) == REPRODUCED
    same["one sample/lost"] = np.full(20, 0.5)
    assert verdict(computed_claims.one_sample, make_results(computed=same)) == NOT_REPRODUCED
    memory = {"memory/beliefs": np.array([1, 10, 99]), "memory/kept": np.array(2)}
    assert verdict(computed_claims.less_memory, make_results(computed=memory), Size(1, 2)) == REPRODUCED
