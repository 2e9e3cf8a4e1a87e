"""Every figure and table of the paper's experiments, by its label: what it stands on, how it looks, what is claimed."""

from typing import NamedTuple

from bellief.errors import UserError
from bellief.paper import claims as tests
from bellief.paper import computed_claims as computed
from bellief.paper.claims import Claim
from bellief.paper.computations import READINGS
from bellief.paper.tasks import HORIZONS, ROLLOUTS, TASKS, Size

CURVES, PANELS, BOUNDS, POSTERIORS, DISTANCES, WEIGHTS = (
    "curves",
    "panels",
    "bounds",
    "posteriors",
    "distances",
    "weights",
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


def _discrete_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    title, agents = TASKS[sweep].title, TASKS[sweep].agents
    long, short = (_MAZE, _MAZE) if sweep == "maze" else (_LONG, _SHORT)
    found = [
        Claim(label, title, f"BBI performs similarly to {other}", long, tests.similar(sweep, "BBI", other))
        for other in ("MMBI", "PSRL")
    ]
    if "BSS" in agents:
        found.append(
            Claim(label, title, "BSS performs slightly worse", short, tests.slightly_worse(sweep, "BSS", "BBI"))
        )
    found += [
        Claim(label, title, f"{agent} does not perform satisfactorily", short, tests.unsatisfactory(sweep, agent))
        for agent in ("VDQN", "BQL")
        if agent in agents
    ]
    found.append(Claim(label, title, "BBI significantly outperforms VDQN", short, tests.ahead(sweep, "BBI", "VDQN")))
    return tuple(found)


def _spread_claims(label: str, sweep: str) -> tuple[Claim, ...]:
    title, agents = TASKS[sweep].title, TASKS[sweep].agents
    short = _MAZE if sweep == "maze" else _SHORT
    found = []
    if "BSS" in agents:
        found += [
            Claim(label, title, f"BSS is more stable than {other}", short, tests.steadier(sweep, "BSS", other))
            for other in ("BBI", "MMBI", "PSRL")
        ]
    found += [
        Claim(label, title, f"VDQN is less stable than {other}", short, tests.steadier(sweep, other, "VDQN"))
        for other in ("BBI", "MMBI", "PSRL")
    ]
    return tuple(found)


def _full(label: str, sweep: str, remark: str = "") -> Item:
    title = f"Evolution of average reward, {TASKS[sweep].title}"
    return Item(label, title, CURVES, (sweep,), (), _discrete_claims(label, sweep), remark)


def _spread(label: str, sweep: str) -> Item:
    title = f"Variability of each algorithm, {TASKS[sweep].title}"
    return Item(label, title, PANELS, (sweep,), (), _spread_claims(label, sweep))


def _horizon(label: str, sweep: str) -> Item:
    title = TASKS[sweep].title
    labels = [f"BBI, H = {horizon}" for horizon in HORIZONS]
    claim = Claim(
        label,
        title,
        "The horizon has a very small impact",
        _LONG,
        tests.little_effect(sweep, labels, f"BBI, H = {HORIZONS[-1]}"),
    )
    return Item(label, f"Impact of the horizon in BBI, {title}", CURVES, (sweep,), (), (claim,))


def _continuous(label: str, sweep: str, remark: str) -> Item:
    title, infinite = TASKS[sweep].title, float("inf")
    rows: list[tuple[str, tuple]] = []
    if sweep == "linear-model":
        rows = [
            ("GPTD does not learn as well as BBI", ("BBI", "GPTD", 1.0, infinite)),
            ("VDQN does not learn as well as BBI", ("BBI", "VDQN", 1.0, infinite)),
            ("VDQN is ahead when there is very little data", ("VDQN", "BBI", 1.0, infinite, 1_000)),
        ]
    else:
        rows = [
            ("BBI performs much better than GPTD", ("BBI", "GPTD", 1.5, infinite)),
            ("VDQN is slightly worse than BBI initially", ("VDQN", "BBI", 0.5, 1.0, 1_000)),
            ("VDQN is slightly better than BBI later", ("VDQN", "BBI", 1.0, 2.0)),
        ]
    found = tuple(
        Claim(label, title, sentence, _CONTINUOUS, tests.survives(sweep, *arguments)) for sentence, arguments in rows
    )
    return Item(label, f"Steps survived in an episode, {title}", CURVES, (sweep,), (), found, remark)


def _by_reading(label: str, sentence: str, least: Size, test) -> tuple[Claim, ...]:
    return tuple(Claim(label, f"NChain, {reading}", sentence, least, test(reading)) for reading in READINGS)


_BOUND = "BBI's value comes closer to the upper bound with more data"
_LINEAR = "The paper prints neither the family of models nor its start and end; ours was fixed before any agent ran."
_PENDULUM = "The paper prints no integrator; ours holds the force for 0.1 s. The planner knows which states are falls."

ITEMS: dict[str, Item] = {
    item.label: item
    for item in (
        _full("fig:full_chain", "nchain"),
        _full("fig:full_loop", "doubleloop"),
        _full("fig:full_lava_small", "lavalake"),
        _full("fig:full_lava_big", "lavalake10", "No layout is printed or public; this one is ours."),
        _full("fig:full_maze", "maze"),
        _continuous("fig:linear_model", "linear-model", _LINEAR),
        _continuous("fig:inverted_pendulum", "pendulum", _PENDULUM),
        _horizon("fig:chainhorizon", "nchain-horizons"),
        _horizon("fig:mazehorizon", "maze-horizons"),
        Item(
            "fig:bayes_bounds",
            "BBI's value and the upper bound on the Bayes-optimal value, NChain",
            BOUNDS,
            (),
            ("bounds",),
            (
                Claim("fig:bayes_bounds", "NChain, for ever", _BOUND, _BOUNDS, computed.bound_approached()),
                Claim("fig:bayes_bounds", "NChain, H = 100", _BOUND, _BOUNDS, computed.bound_approached(", H = 100")),
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
                Size(5, 1000),
                computed.captures_uncertainty,
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
                ),
                *_by_reading(
                    "tab:wasserstein",
                    "Induction is closer to the truth than the mean MDP",
                    Size(10, 1000),
                    computed.closer_than_mean,
                ),
                Claim(
                    "tab:wasserstein",
                    "NChain",
                    "The distances are 22.80, 16.41 and 4.18",
                    Size(2, 1000),
                    computed.printed_distances,
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
                    "Weights are unstable only when there is very little data",
                    _SHORT,
                    tests.unstable_only_early(sweep),
                )
                for sweep in ("nchain", "doubleloop", "lavalake", "lavalake10", "maze")
            ),
            "Share of the plans in which values were drawn again or sigma was doubled.",
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
