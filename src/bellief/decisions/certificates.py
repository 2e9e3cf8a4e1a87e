"""Simulation-based calibration: are the intervals right when the prior is?

Draw an MDP from the prior, let it produce data, evaluate a policy from the data alone, and see where the true value
falls among the posterior's draws. Over many repetitions a 90% interval must hold the truth 90% of the time, and the
rank of the truth must be uniform (Talts et al. 2018). Everything here is NumPy and shares no code with what is
checked.

Under discount 1 `evaluate` refuses logs after which the policy may never end (`evaluation.knowledge.bounded`). Such
logs are drawn, counted as refused, and replaced. Given the log, the truth is distributed as the posterior's draws are;
so calibration holds as well among the logs that any rule keeps, as long as the rule sees the log and not the truth. The
rule here is that of `evaluate`, applied to MDPs of another seed than those that are ranked: the same MDPs would lose
their extreme values and the truth would not.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.decisions import logged_worlds
from bellief.decisions.worlds import draw_world, simulate, true_values
from bellief.errors import UserError
from bellief.evaluation.knowledge import EndlessError, bounded
from bellief.evaluation.logged_prior import NAMES
from bellief.evaluation.policy_value import evaluate
from bellief.evaluation.posterior import interval
from bellief.evaluation.problem import Problem, prepare
from bellief.evaluation.question_checks import check_choice, check_memory, check_numbers
from bellief.evaluation.sampled import SampledMDPs
from bellief.priors import PAPER_PRIOR, PRIORS, Prior
from bellief.registry import METHODS

LEVELS = (0.5, 0.8, 0.9, 0.95)

# The level at which `evaluate` decides whether a log can be answered.
DEFAULT_LEVEL = 0.9

# Added to the seed of a simulation for the MDPs that decide whether its log is answered.
OTHER_SEED = 1 << 40

# So many logs are drawn for each that is to be answered, at most.
MOST_REFUSED = 50

# The default of version 0.1 in units of its own: noise 1, pairs that differ by 1, outcomes of a pair by 0.7.
UNIT_EVEN = dataclasses.replace(logged_worlds.UNIT, state_weight=None)


class Calibration(NamedTuple):
    """Coverage of the start value's intervals over all simulations, and the ranks of the truth.

    >>> from bellief.decisions.certificates import calibrate
    >>> found = calibrate(states=2, transitions=20, simulations=5, draws=19)
    >>> type(found).__name__, 0 <= found.uniformity(bins=5) <= 1
    ('Calibration', True)
    """

    coverage: dict[float, float]
    ranks: Int[np.ndarray, "n"]
    draws: int
    width: dict[float, float]
    refused: int = 0

    @property
    def refused_share(self) -> float:
        """The share of logs that were drawn and that `evaluate` does not answer."""
        return self.refused / (self.refused + len(self.ranks))

    def uniformity(self, bins: int = 20) -> float:
        """p-value of a chi-square test that ranks are uniform."""
        edges = np.linspace(0, self.draws + 1, bins + 1)
        observed, _ = np.histogram(self.ranks + 0.5, edges)
        # Ranks are whole numbers, so bins may hold different numbers of them.
        expected = np.diff(np.ceil(edges - 0.5)) / (self.draws + 1) * len(self.ranks)
        from scipy import stats

        return float(stats.chisquare(observed, expected).pvalue)


class Tally:
    """How often intervals of the start value held the truth so far."""

    def __init__(self) -> None:
        self.ranks: list[int] = []
        self.draws = self.refused = 0
        self.hits: dict[float, list[bool]] = {level: [] for level in LEVELS}
        self.widths: dict[float, list[float]] = {level: [] for level in LEVELS}

    def add(self, samples: Float[np.ndarray, "n"], truth: float) -> None:
        """Account for one posterior of a start value."""
        self.draws = len(samples)
        self.ranks.append(int((samples < truth).sum()))
        for level in LEVELS:
            low, high = interval(samples, level)
            self.hits[level].append(bool(low <= truth <= high))
            self.widths[level].append(high - low)

    def finish(self) -> Calibration:
        """Coverage, ranks and widths."""
        return Calibration(
            coverage={level: float(np.mean(self.hits[level])) for level in LEVELS},
            ranks=np.array(self.ranks),
            draws=self.draws,
            width={level: float(np.median(self.widths[level])) for level in LEVELS},
            refused=self.refused,
        )


def calibrate(
    states: int = 4,
    actions: int = 2,
    transitions: int = 50,
    simulations: int = 1000,
    discount: float = 0.9,
    terminates: bool = False,
    draws: int = 199,
    method: str = "joint",
    prior: Prior = PAPER_PRIOR,
    seed: int = 0,
    belief_prior: "str | Prior | None" = None,
    progress: Callable[[float], None] = lambda fraction: None,
    **options: Any,
) -> Calibration:
    """Repeat draw, simulate, evaluate; `options` go to `evaluate`. The target policy is drawn for each simulation.

    Worlds come from `prior`; the evaluation uses `belief_prior`, by default the same. A prior with
    a `state_weight` has parameters of its own (`decisions.logged_worlds`), which only its own belief is given.

    >>> from bellief.decisions.certificates import calibrate
    >>> found = calibrate(states=2, transitions=20, simulations=5, draws=19)
    >>> found.ranks.shape, sorted(found.coverage)
    ((5,), [0.5, 0.8, 0.9, 0.95])
    """
    rng, tally = np.random.default_rng(seed), Tally()
    for number in range(MOST_REFUSED * simulations):
        known = None
        if prior.state_weight is None:
            world = draw_world(rng, prior, states, actions, terminates)
        else:
            world, known = logged_worlds.draw(rng, prior, states, actions, terminates)
        policy = rng.dirichlet(np.ones(actions), size=states)
        data = simulate(rng, world, np.full((states, actions), 1 / actions), transitions)
        table = np.concatenate([policy, np.full((data.states - states, actions), 1 / actions)])
        own = seed * simulations + number
        problem: Problem
        if known is not None and belief_prior is None:
            problem = logged_worlds.known_problem(data, discount, prior, known, terminates)
        else:
            problem = prepare(data, discount, prior=belief_prior or prior, start=0, terminates=terminates)
        try:
            if discount == 1:
                refuse_endless(problem, table, own + OTHER_SEED, draws)
            if method == "joint" and not options:
                samples = start_values(problem, table, own, draws)
            else:
                samples = evaluate(
                    data, table, discount, method=method, prior=belief_prior or prior, start=0, draws=draws, seed=own,
                    terminates=terminates, **options,
                ).start_samples  # fmt: skip
        except EndlessError:
            tally.refused += 1
            continue
        tally.add(samples, true_values(world, policy, discount)[0])
        progress(len(tally.ranks) / simulations)
        if len(tally.ranks) == simulations:
            return tally.finish()
    raise UserError(
        f"evaluate refuses {tally.refused} of {MOST_REFUSED * simulations} logs of this size, because the policy may "
        "never end: lower the discount."
    )


def start_values(problem: Problem, policy: Float[np.ndarray, "S A"], seed: int, draws: int) -> Float[np.ndarray, "n"]:
    """Values of state 0 in the MDPs that `evaluate` would draw."""
    return SampledMDPs(problem, seed, draws).values(policy[None])[:, 0, 0]


def refuse_endless(problem: Problem, policy: Float[np.ndarray, "S A"], seed: int, draws: int) -> None:
    """Raise what `evaluate` would raise by default, had it drawn the MDPs of this seed."""
    samples = start_values(problem, policy, seed, draws)
    bounded(problem, samples, samples, DEFAULT_LEVEL, "the policy")


@dataclasses.dataclass(frozen=True, eq=False)
class Certificate:
    """Coverage for one size of problem: with the prior known, and as `evaluate` has it by default.

    The two differ for the priors `logged` and `logged-0.1` only: `evaluate` takes scales, and the former's base measure
    and levels, from the log itself. `calibrated` judges the first of them, `calibrated_by_default` the second.

    >>> import bellief
    >>> found = bellief.certify(states=2, transitions=20, prior="paper", simulations=5, draws=19)
    >>> type(found).__name__, found.settings["states"], type(found.verdict).__name__
    ('Certificate', 2, 'str')
    """

    settings: dict[str, Any]
    known: Calibration
    estimated: Calibration | None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers: what `bellief certify --json` prints."""
        count = len(self.known.ranks)

        def rows(found: Calibration) -> list[dict[str, float]]:
            return [
                {
                    "level": level,
                    "coverage": found.coverage[level],
                    "error": float(np.sqrt(level * (1 - level) / count)),
                    "width": found.width[level],
                }
                for level in LEVELS
            ]

        return self.settings | {
            "levels": rows(self.known),
            "levels_with_estimated_scale": None if self.estimated is None else rows(self.estimated),
            "uniform_ranks_p": self.known.uniformity(),
            "refused": self.known.refused_share,
            "refused_with_estimated_scale": None if self.estimated is None else self.estimated.refused_share,
            "calibrated": self.calibrated,
            "calibrated_with_estimated_scale": None if self.estimated is None else self.calibrated_by_default,
            "verdict": self.verdict,
        }

    @property
    def calibrated(self) -> bool:
        """Whether coverage at every level lies where 999 of 1,000 honest methods would have it."""
        return _is_calibrated(self.known)

    @property
    def calibrated_by_default(self) -> bool:
        """The same for what `evaluate` does by default."""
        return _is_calibrated(self.known if self.estimated is None else self.estimated)

    @property
    def verdict(self) -> str:
        """A sentence, or two where the scale matters."""
        said = (
            "Calibrated: the intervals hold the truth as often as they say, within Monte Carlo error"
            if self.calibrated
            else "Not calibrated: the intervals do not hold the truth as often as they say"
        )
        if self.estimated is None:
            return said + "."
        also = "do" if self.calibrated_by_default else "do not"
        return f"{said}, where the prior is known. With the prior from each log, as evaluate has it, they {also}."


def _is_calibrated(found: Calibration) -> bool:
    from scipy import stats

    count = len(found.ranks)
    return all(
        stats.binomtest(round(found.coverage[level] * count), count, level).pvalue > 0.001 / len(LEVELS)
        for level in LEVELS
    )


def certify(
    states: int,
    transitions: int,
    *,
    actions: int = 2,
    discount: float = 0.9,
    terminates: bool = False,
    prior: str = "logged",
    method: str = "joint",
    simulations: int = 500,
    draws: int = 199,
    seed: int = 0,
    estimated: bool = True,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Certificate:
    """Simulation-based calibration for problems of one size: are intervals right when the prior is?

    With the prior `logged` worlds come from the model in `decisions.logged_worlds`, with `logged-0.1` from that of
    version 0.1; `estimated` asks for a second pass in which the prior is taken from each log, as `evaluate` does. Under
    discount 1 logs that `evaluate` refuses are counted and replaced.

    >>> import bellief
    >>> found = bellief.certify(states=2, transitions=20, prior="paper", simulations=5, draws=19)
    >>> 0 <= found.known.coverage[0.9] <= 1
    True
    """
    check_choice("prior", prior, NAMES)
    check_choice("method", method, METHODS)
    counts = {"states": states, "transitions": transitions, "actions": actions, "simulations": simulations}
    check_numbers(discount, 0.5, seed, draws=draws, **counts)
    check_memory(states, actions, tables=1)
    if discount == 1 and not terminates:
        raise UserError("With discount 1 and no ends the value is infinite: let episodes end, or lower the discount.")
    from_log = prior not in PRIORS
    unit = PRIORS.get(prior) or (logged_worlds.UNIT if prior == "logged" else UNIT_EVEN)
    passes = 2 if estimated and from_log else 1

    def run(number: int, belief_prior: "str | None") -> Calibration:
        return calibrate(
            states,
            actions,
            transitions,
            simulations,
            discount,
            terminates,
            draws,
            method,
            unit,
            seed,
            belief_prior,
            lambda fraction: progress((number + fraction) / passes),
        )

    settings = counts | {"discount": discount, "ends": terminates, "prior": prior, "method": method}
    return Certificate(settings, run(0, None), run(1, prior) if passes == 2 else None)
