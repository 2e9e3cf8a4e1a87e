"""Every figure and table of the paper's experiments, by its label: what it stands on, how it looks, what is claimed."""

from typing import NamedTuple

from bellief.errors import UserError
from bellief.paper import computed_claims as computed
from bellief.paper import item_claims as least
from bellief.paper import sweep_claims as tests
from bellief.paper.agents import HORIZONS, ROLLOUTS
from bellief.paper.claims import Claim
from bellief.paper.item_claims import by_reading, discrete_claims, linear_claims, pendulum_claims, spread_claims
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


def _full(label: str, sweep: str, remark: str = "") -> Item:
    title = f"Evolution of average reward, {TASKS[sweep].title}"
    return Item(label, title, CURVES, (sweep,), (), discrete_claims(label, sweep), remark)


def _spread(label: str, sweep: str) -> Item:
    title = f"Variability of each algorithm, {TASKS[sweep].title}"
    return Item(label, title, PANELS, (sweep,), (), spread_claims(label, sweep))


def _horizon(label: str, sweep: str) -> Item:
    title = TASKS[sweep].title
    labels = [f"BBI, H = {horizon}" for horizon in HORIZONS]
    test = tests.little_effect(sweep, labels, f"BBI, H = {HORIZONS[-1]}")
    claim = Claim(label, title, "The horizon has a very small impact", least.LONG, test, "horizon")
    return Item(label, f"Impact of the horizon in BBI, {title}", CURVES, (sweep,), (), (claim,))


def _continuous(label: str, sweep: str, claims: tuple[Claim, ...], remark: str) -> Item:
    return Item(label, f"Steps survived in an episode, {TASKS[sweep].title}", CURVES, (sweep,), (), claims, remark)


_BOUND = "BBI's value comes closer to the upper bound with more data"
_LINEAR = (
    "The paper prints neither the family of models nor its start and end; ours was fixed before any agent ran. "
    "Survival is even in the state, so values that are linear in it, as the formula has them, explain less than 1% of "
    "it: BBI and GPTD are run with those and with products of up to two coordinates, and where the two disagree the "
    "claim is under-specified."
)
_PENDULUM = (
    "The paper prints no integrator; ours holds the force for 0.1 s. The planner knows which states are falls. The "
    "paper tried several q(s) and does not say which one the figure shows: four are run, and where they disagree the "
    "claim is under-specified."
)

ITEMS: dict[str, Item] = {
    item.label: item
    for item in (
        _full("fig:full_chain", "nchain"),
        _full("fig:full_loop", "doubleloop"),
        _full("fig:full_lava_small", "lavalake"),
        _full("fig:full_lava_big", "lavalake10", "No layout is printed or public; this one is ours."),
        _full("fig:full_maze", "maze"),
        _continuous("fig:linear_model", "linear-model", linear_claims("fig:linear_model", "linear-model"), _LINEAR),
        _continuous(
            "fig:inverted_pendulum", "pendulum", pendulum_claims("fig:inverted_pendulum", "pendulum"), _PENDULUM
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
                Claim(
                    "fig:bayes_bounds", "NChain, for ever", _BOUND, least.BOUNDS, computed.bound_approached(), "bounds"
                ),
                Claim(
                    "fig:bayes_bounds",
                    "NChain, H = 100",
                    _BOUND,
                    least.BOUNDS,
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
            by_reading(
                "fig:posterior_plots",
                "Induction reasonably captures the uncertainty of the true distribution",
                least.POSTERIORS,
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
                *by_reading(
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
                    least.LONG,
                    tests.no_significant_difference("nchain-rollouts", [f"BBI, {text}" for text in ROLLOUTS.values()]),
                    "rollouts",
                    "neither the tasks and sizes nor the test of the sentence are printed",
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
                    least.SHORT,
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
                *by_reading(
                    "sec:statements",
                    "Any q with full support gives the same values",
                    least.IDENTITIES,
                    computed.any_distribution,
                    "q-discrete",
                ),
                *by_reading(
                    "sec:statements",
                    "Mean-field is the mean MDP",
                    least.IDENTITIES,
                    computed.mean_field_is_mean_mdp,
                    "mean-field",
                ),
                Claim(
                    "sec:statements",
                    "NChain",
                    "PSRL is MMBI with one sample",
                    least.IDENTITIES,
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
