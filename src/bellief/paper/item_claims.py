"""The claims of learning curves and continuous tasks, and the least sizes at which claims are judged."""

import itertools
from collections.abc import Iterable
from typing import Any

from bellief.paper import sweep_claims as tests
from bellief.paper.agents import BQL_VARIANTS, GPTD_PACES, LINEAR_FEATURES, STATE_DISTRIBUTIONS, VDQN_PACES
from bellief.paper.claims import Claim
from bellief.paper.computations import READINGS
from bellief.paper.tasks import TASKS, Size

# Least sizes: as long as the agents still differ much, nothing is judged.
LONG, SHORT, CONTINUOUS, BOUNDS = Size(10, 50_000), Size(10, 10_000), Size(10, 5_000), Size(10, 5_000)
# On the Maze BBI, MMBI and PSRL earn next to nothing in the first 100,000 steps.
MAZE = Size(10, 500_000)
# On LavaLake 5x7 runs of BBI and MMBI still find the better way after 200,000 steps; the caption has a million.
LAKE = Size(10, 1_000_000)
# On each task: for BBI, MMBI and PSRL among one another, and beside agents that have fewer steps. After 10,000 steps on
# the larger lake BBI has learned little.
LEAST = {"maze": (MAZE, MAZE), "lavalake": (LAKE, SHORT), "lavalake10": (LONG, LONG)}
POSTERIORS, IDENTITIES = Size(5, 1000), Size(10, 1000)
MODEL_BASED = ("BBI", "MMBI", "PSRL")


# What the paper does not print of a task: a claim that fails on ours may hold on theirs.
UNPRINTED = {
    "lavalake10": "no layout of the 10 x 10 lake is printed or public: this one is ours",
    "linear-model": "the family of models is not printed: this one is ours",
}


def _marked(sweep: str, claims: Iterable[Claim]) -> tuple[Claim, ...]:
    return tuple(claim._replace(unprinted=UNPRINTED.get(sweep, "")) for claim in claims)


def discrete_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    """What the paper says of the rewards on a discrete task."""
    title, agents = TASKS[sweep].title, TASKS[sweep].agents
    long, short = LEAST.get(sweep, (LONG, SHORT))
    found = [
        Claim(label, title, f"BBI performs similarly to {other}", long, tests.similar(sweep, "BBI", other), "similar")
        for other in ("MMBI", "PSRL")
    ]
    test = tests.not_behind(sweep, "BBI", "PSRL")
    found.append(Claim(label, title, "BBI is competitive with PSRL", long, test, "competitive"))
    if "BSS" in agents:
        test = tests.slightly_worse(sweep, "BSS", "BBI")
        found.append(Claim(label, title, "BSS performs slightly worse than BBI", short, test, "bss-worse"))
    for agent, variants in (("VDQN", list(VDQN_PACES)), ("BQL", list(BQL_VARIANTS))):
        if agent in agents:
            test = tests.unsatisfactory(sweep, variants)
            found.append(Claim(label, title, f"{agent} is not satisfactory", short, test, "unsatisfactory"))
    test = tests.ahead(sweep, "BBI", *VDQN_PACES)
    found.append(Claim(label, title, "BBI significantly outperforms VDQN", short, test, "outperforms"))
    return _marked(sweep, found)


def spread_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    """What the paper says of the spread over runs on a discrete task."""
    title, agents = TASKS[sweep].title, TASKS[sweep].agents
    short = LEAST.get(sweep, (LONG, SHORT))[1]
    long = MAZE if sweep == "maze" else LONG
    found = []
    if "BSS" in agents:
        for other in MODEL_BASED:
            test = tests.steadier(sweep, "BSS", other)
            found.append(Claim(label, title, f"BSS is more stable than {other}", short, test, "stable"))
        for other in MODEL_BASED:
            test = tests.better_mean(sweep, other, "BSS")
            found.append(Claim(label, title, f"{other} has a better mean than BSS", short, test, "stable"))
    for first, second in itertools.pairwise(MODEL_BASED):
        test = tests.steadier(sweep, first, second, in_order=True)
        found.append(Claim(label, title, f"{first} is more stable than {second}", long, test, "stable"))
    for other in MODEL_BASED:
        test = tests.steadier(sweep, other, *VDQN_PACES)
        found.append(Claim(label, title, f"VDQN is less stable than {other}", short, test, "vdqn-unstable"))
    return _marked(sweep, found)


_INFINITE = float("inf")


def linear_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    """Judged over the declared features, in which GPTD has those of BBI and VDQN has none, and over the paces."""
    title = TASKS[sweep].title
    same = [(bbi, gptd) for bbi, paces in LINEAR_FEATURES.values() for gptd in paces]
    vdqn = [(bbi, one) for bbi, _ in LINEAR_FEATURES.values() for one in VDQN_PACES]
    rows = (
        ("GPTD does not learn as well as BBI", same, None, "GPTD", "linear-gptd"),
        ("VDQN does not learn as well as BBI", vdqn, None, "VDQN", "linear-vdqn"),
        (
            "VDQN is ahead when the amount of data is very small",
            [pair[::-1] for pair in vdqn],
            1_000,
            "VDQN",
            "linear-vdqn",
        ),
    )
    found = [
        Claim(label, title, said, CONTINUOUS, tests.survives(sweep, pairs, 1.0, _INFINITE, early, rival), quote)
        for said, pairs, early, rival, quote in rows
    ]
    return _marked(sweep, found)


def pendulum_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    """Judged over the declared state distributions and paces."""
    title = TASKS[sweep].title
    every = list(STATE_DISTRIBUTIONS)
    gptd = [(bbi, one) for bbi in every for one in GPTD_PACES]
    vdqn = [(one, bbi) for bbi in every for one in VDQN_PACES]
    rows = (
        ("BBI performs much better than GPTD", gptd, 1.5, _INFINITE, None, "GPTD"),
        ("VDQN is slightly worse than BBI initially", vdqn, 0.5, 1.0, 1_000, "VDQN"),
        ("VDQN is slightly better than BBI later", vdqn, 1.0, 2.0, None, "VDQN"),
    )
    found = [
        Claim(label, title, said, CONTINUOUS, tests.survives(sweep, pairs, low, high, early, rival), "pendulum")
        for said, pairs, low, high, early, rival in rows
    ]
    test = tests.depends_on(sweep, every)
    return (*found, Claim(label, title, "The choice of q(s) is of utmost importance", CONTINUOUS, test, "q-matters"))


def by_reading(label: str, sentence: str, least: Size, test: Any, quote: str) -> tuple[Claim, ...]:
    """One claim for each reading of the fixed policy on NChain."""
    return tuple(Claim(label, f"NChain, {reading}", sentence, least, test(reading), quote) for reading in READINGS)
