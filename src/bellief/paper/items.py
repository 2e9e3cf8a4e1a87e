"""Every figure and table of the paper's experiments, by its label: what it stands on, how it looks, what is claimed."""

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

from bellief.errors import UserError
from bellief.paper import computed_claims as computed
from bellief.paper import sweep_claims as tests
from bellief.paper.agents import BQL_VARIANTS, HORIZONS, LINEAR_FEATURES, ROLLOUTS, STATE_DISTRIBUTIONS
from bellief.paper.claims import Claim
from bellief.paper.computations import READINGS
from bellief.paper.tasks import TASKS, Size

CURVES, PANELS, BOUNDS, POSTERIORS, DISTANCES, WEIGHTS, STATEMENTS = (
    "curves",
    "panels",
    "bounds",
    "posteriors",
    "distances",
    "weights",
    "statements",
)


class Item(NamedTuple):
    """A figure, table or statement: `kind` says how it is drawn, `sweeps` and `computations` what it is made from.

    >>> from bellief.paper.items import choose
    >>> [(item.label, item.kind) for item in choose("tab:wasserstein")]
    [('tab:wasserstein', 'distances')]
    """

    label: str
    title: str
    kind: str
    sweeps: tuple[str, ...] = ()
    computations: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    remark: str = ""

    @property
    def stem(self) -> str:
        """The name of its files."""
        return self.label.replace(":", "-")


# Least sizes: as long as the agents still differ much, nothing is judged.
_LONG, _SHORT, _CONTINUOUS, _BOUNDS = Size(10, 50_000), Size(10, 10_000), Size(10, 5_000), Size(10, 5_000)
# On the Maze BBI, MMBI and PSRL earn next to nothing in the first 100,000 steps.
_MAZE = Size(10, 500_000)
_POSTERIORS, _IDENTITIES = Size(5, 1000), Size(10, 1000)
MODEL_BASED = ("BBI", "MMBI", "PSRL")


# What the paper does not print of a task: a claim that fails on ours may hold on theirs.
UNPRINTED = {
    "lavalake10": "no layout of the 10 x 10 lake is printed or public: this one is ours",
    "linear-model": "the family of models is not printed: this one is ours",
}


def _marked(sweep: str, claims: Iterable[Claim]) -> tuple[Claim, ...]:
    return tuple(claim._replace(unprinted=UNPRINTED.get(sweep, "")) for claim in claims)


def _discrete_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    title, agents = TASKS[sweep].title, TASKS[sweep].agents
    long, short = (_MAZE, _MAZE) if sweep == "maze" else (_LONG, _SHORT)
    found = [
        Claim(label, title, f"BBI performs similarly to {other}", long, tests.similar(sweep, "BBI", other), "similar")
        for other in ("MMBI", "PSRL")
    ]
    if "BSS" in agents:
        test = tests.slightly_worse(sweep, "BSS", "BBI")
        found.append(Claim(label, title, "BSS performs slightly worse than BBI", short, test, "bss-worse"))
    for agent, variants in (("VDQN", ["VDQN"]), ("BQL", list(BQL_VARIANTS))):
        if agent in agents:
            test = tests.unsatisfactory(sweep, variants)
            found.append(Claim(label, title, f"{agent} is not satisfactory", short, test, "unsatisfactory"))
    test = tests.ahead(sweep, "BBI", "VDQN")
    found.append(Claim(label, title, "BBI significantly outperforms VDQN", short, test, "outperforms"))
    return _marked(sweep, found)


def _spread_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    title, agents = TASKS[sweep].title, TASKS[sweep].agents
    short, long = (_MAZE, _MAZE) if sweep == "maze" else (_SHORT, _LONG)
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
        test = tests.steadier(sweep, other, "VDQN")
        found.append(Claim(label, title, f"VDQN is less stable than {other}", short, test, "vdqn-unstable"))
    return _marked(sweep, found)


def _full(label: str, sweep: str, remark: str = "") -> Item:
    title = f"Evolution of average reward, {TASKS[sweep].title}"
    return Item(label, title, CURVES, (sweep,), (), _discrete_claims(label, sweep), remark)


def _spread(label: str, sweep: str) -> Item:
    title = f"Variability of each algorithm, {TASKS[sweep].title}"
    return Item(label, title, PANELS, (sweep,), (), _spread_claims(label, sweep))


def _horizon(label: str, sweep: str) -> Item:
    title = TASKS[sweep].title
    labels = [f"BBI, H = {horizon}" for horizon in HORIZONS]
    test = tests.little_effect(sweep, labels, f"BBI, H = {HORIZONS[-1]}")
    claim = Claim(label, title, "The horizon has a very small impact", _LONG, test, "horizon")
    return Item(label, f"Impact of the horizon in BBI, {title}", CURVES, (sweep,), (), (claim,))


_INFINITE = float("inf")


def _linear_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    """Judged over the declared features, in which GPTD has those of BBI and VDQN has none."""
    title = TASKS[sweep].title
    same = list(LINEAR_FEATURES.values())
    vdqn = [(bbi, "VDQN") for bbi, _ in same]
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
        Claim(label, title, said, _CONTINUOUS, tests.survives(sweep, pairs, 1.0, _INFINITE, early, rival), quote)
        for said, pairs, early, rival, quote in rows
    ]
    return _marked(sweep, found)


def _pendulum_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    """Judged over the declared state distributions."""
    title = TASKS[sweep].title
    every = list(STATE_DISTRIBUTIONS)
    gptd, vdqn = [(bbi, "GPTD") for bbi in every], [("VDQN", bbi) for bbi in every]
    rows = (
        ("BBI performs much better than GPTD", gptd, 1.5, _INFINITE, None, "GPTD"),
        ("VDQN is slightly worse than BBI initially", vdqn, 0.5, 1.0, 1_000, "VDQN"),
        ("VDQN is slightly better than BBI later", vdqn, 1.0, 2.0, None, "VDQN"),
    )
    found = [
        Claim(label, title, said, _CONTINUOUS, tests.survives(sweep, pairs, low, high, early, rival), "pendulum")
        for said, pairs, low, high, early, rival in rows
    ]
    test = tests.depends_on(sweep, every)
    return (*found, Claim(label, title, "The choice of q(s) is of utmost importance", _CONTINUOUS, test, "q-matters"))


def _continuous(label: str, sweep: str, claims: tuple[Claim, ...], remark: str) -> Item:
    return Item(label, f"Steps survived in an episode, {TASKS[sweep].title}", CURVES, (sweep,), (), claims, remark)


def _by_reading(label: str, sentence: str, least: Size, test: Any, quote: str) -> tuple[Claim, ...]:
    return tuple(Claim(label, f"NChain, {reading}", sentence, least, test(reading), quote) for reading in READINGS)


_BOUND = "BBI's value comes closer to the upper bound with more data"
_LINEAR = (
    "The paper prints neither the family of models nor its start and end; ours was fixed before any agent ran. "
    "Survival "
    "is even in the state, so values that are linear in it, as the formula has them, explain less than 1% of it: BBI "
    "and "
    "GPTD are run with those and with products of up to two coordinates, and where the two disagree the claim is "
    "under-specified."
)
_PENDULUM = (
    "The paper prints no integrator; ours holds the force for 0.1 s. The planner knows which states are falls. The "
    "paper "
    "tried several q(s) and does not say which one the figure shows: four are run, and where they disagree the claim "
    "is "
    "under-specified."
)

ITEMS: dict[str, Item] = {
    item.label: item
    for item in (
        _full("fig:full_chain", "nchain"),
        _full("fig:full_loop", "doubleloop"),
        _full("fig:full_lava_small", "lavalake"),
        _full("fig:full_lava_big", "lavalake10", "No layout is printed or public; this one is ours."),
        _full("fig:full_maze", "maze"),
        _continuous("fig:linear_model", "linear-model", _linear_claims("fig:linear_model", "linear-model"), _LINEAR),
        _continuous(
            "fig:inverted_pendulum", "pendulum", _pendulum_claims("fig:inverted_pendulum", "pendulum"), _PENDULUM
        ),
        _horizon("fig:chainhorizon", "nchain-horizons"),
        _horizon("fig:mazehorizon", "maze-horizons"),
        Item(
            "fig:bayes_bounds",
            "BBI's value and the upper bound on the Bayes-optimal value, NChain",
            BOUNDS,
            (),
            ("bounds",),
            (
                Claim("fig:bayes_bounds", "NChain, for ever", _BOUND, _BOUNDS, computed.bound_approached(), "bounds"),
                Claim(
                    "fig:bayes_bounds",
                    "NChain, H = 100",
                    _BOUND,
                    _BOUNDS,
                    computed.bound_approached(", H = 100"),
                    "bounds",
                ),
            ),
            "Value of the start state, averaged over 100 MDPs from the posterior; bound and policy with the same "
            "horizon. A hundred steps hold only 63% of the discounted mass, so that a value of a hundred steps cannot "
            "come near a bound that looks ahead for ever.",
        ),
        Item(
            "fig:posterior_plots",
            "Value posteriors of a fixed policy, NChain",
            POSTERIORS,
            (),
            ("posteriors",),
            _by_reading(
                "fig:posterior_plots",
                "Induction reasonably captures the uncertainty of the true distribution",
                _POSTERIORS,
                computed.captures_uncertainty,
                "captures",
            ),
            "Value of the start state. The paper's policy takes the first action with probability 0.8; which action is "
            "the first depends on the source of the environment, so both readings are shown.",
        ),
        Item(
            "tab:wasserstein",
            "Wasserstein distance to the true value distribution, NChain",
            DISTANCES,
            (),
            ("wasserstein",),
            (
                *_by_reading(
                    "tab:wasserstein",
                    "The distance to the true distribution decreases over time",
                    Size(10, 1000),
                    computed.distance_falls,
                    "falls",
                ),
                Claim(
                    "tab:wasserstein",
                    "NChain",
                    "The distances are 22.80, 16.41 and 4.18",
                    Size(2, 1000),
                    computed.printed_distances,
                    "distances",
                ),
            ),
            "Averaged over states and data sets, for both readings of the policy.",
        ),
        _spread("fig:ci_chain", "nchain"),
        _spread("fig:ci_loop", "doubleloop"),
        _spread("fig:ci_lava_lake_small", "lavalake"),
        _spread("fig:ci_lava_lake", "lavalake10"),
        _spread("fig:ci_maze", "maze"),
        Item(
            "sec:rollout",
            "The three rollout formulas, NChain",
            CURVES,
            ("nchain-rollouts",),
            (),
            (
                Claim(
                    "sec:rollout",
                    "NChain",
                    "There is no significant difference between the rollout formulas",
                    _LONG,
                    tests.no_significant_difference("nchain-rollouts", [f"BBI, {text}" for text in ROLLOUTS.values()]),
                    "rollouts",
                ),
            ),
        ),
        Item(
            "sec:hyperparameters",
            "How often BBI's weights were unstable",
            WEIGHTS,
            ("nchain", "doubleloop", "lavalake", "lavalake10", "maze"),
            (),
            tuple(
                Claim(
                    "sec:hyperparameters",
                    TASKS[sweep].title,
                    "Weights are unstable when there is very little data, and then rarely",
                    _SHORT,
                    tests.unstable_early(sweep),
                    "weights",
                )
                for sweep in ("nchain", "doubleloop", "lavalake", "lavalake10", "maze")
            ),
            "Share of the plans in which values were drawn again or sigma was doubled, which happens where a plain "
            "sum of "
            "exponentials would underflow in double precision.",
        ),
        Item(
            "sec:statements",
            "Statements beside the figures, NChain",
            STATEMENTS,
            (),
            ("identities",),
            (
                *_by_reading(
                    "sec:statements",
                    "Any q with full support gives the same values",
                    _IDENTITIES,
                    computed.any_distribution,
                    "q-discrete",
                ),
                *_by_reading(
                    "sec:statements",
                    "Mean-field is the mean MDP",
                    _IDENTITIES,
                    computed.mean_field_is_mean_mdp,
                    "mean-field",
                ),
                Claim(
                    "sec:statements",
                    "NChain",
                    "PSRL is MMBI with one sample",
                    _IDENTITIES,
                    computed.one_sample,
                    "psrl-mmbi",
                ),
                Claim(
                    "sec:statements",
                    "NChain",
                    "Induction needs less memory than a tree of beliefs",
                    Size(1, 5),
                    computed.less_memory,
                    "memory",
                ),
            ),
            "Values of the start state for a horizon of 100 steps; the Gaussian belief as in the paper.",
        ),
    )
}


def choose(only: str | None) -> list[Item]:
    """Items by labels with commas between them; all of them where none is given."""
    if only is None:
        return list(ITEMS.values())
    labels = [label.strip() for label in only.split(",") if label.strip()]
    for label in labels:
        if label not in ITEMS:
            raise UserError(f"The paper has no item '{label}'; see 'bellief paper --list'.")
    if not labels:
        raise UserError("--only needs labels, for example fig:full_chain,tab:wasserstein.")
    return [item for label, item in ITEMS.items() if label in labels]


def sweeps_of(items: list[Item]) -> list[str]:
    """The sweeps that items need, each once, those that others share from first."""
    needed = {sweep for item in items for sweep in item.sweeps}
    return [name for name in TASKS if name in needed]


def computations_of(items: list[Item]) -> list[str]:
    """The computations that items need, each once."""
    return list(dict.fromkeys(name for item in items for name in item.computations))
