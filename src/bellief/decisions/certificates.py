"""Simulation-based calibration: are the intervals right when the prior is?

Draw an MDP from the prior, let it produce data, evaluate a policy from the data alone, and see where the true value
falls among the posterior's draws. Over many repetitions a 90% interval must hold the truth 90% of the time, and the
rank of the truth must be uniform (Talts et al. 2018). Everything here is NumPy, so that nothing is checked against
itself.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.errors import UserError
from bellief.evaluation.checks import check_choice, check_memory, check_numbers
from bellief.evaluation.logged_prior import NAMES, REWARD_SHAPE, ROW_WEIGHT
from bellief.evaluation.policy_value import METHODS, evaluate
from bellief.evaluation.posterior import ValuePosterior
from bellief.logs.transitions import Transitions
from bellief.priors import PAPER_PRIOR, PRIORS, Prior

LEVELS = (0.5, 0.8, 0.9, 0.95)

# The default prior for logged data in units of its own: noise 1, pairs that differ by 1, outcomes of a pair by 0.7.
UNIT_LOGGED = Prior(sparse=True, row_weight=ROW_WEIGHT, outcome_strength=2.0, reward_shape=REWARD_SHAPE)


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
        self.draws = 0
        self.hits: dict[float, list[bool]] = {level: [] for level in LEVELS}
        self.widths: dict[float, list[float]] = {level: [] for level in LEVELS}

    def add(self, posterior: ValuePosterior, truth: float) -> None:
        """Account for one posterior; the start value is that of its first state."""
        self.draws = len(posterior.start_samples)
        self.ranks.append(int((posterior.start_samples < truth).sum()))
        for level in LEVELS:
            low, high = (bound[0] for bound in posterior.interval(level))
            self.hits[level].append(bool(low <= truth <= high))
            self.widths[level].append(high - low)

    def finish(self) -> Calibration:
        """Coverage, ranks and widths."""
        return Calibration(
            coverage={level: float(np.mean(self.hits[level])) for level in LEVELS},
            ranks=np.array(self.ranks),
            draws=self.draws,
            width={level: float(np.median(self.widths[level])) for level in LEVELS},
        )


class World(NamedTuple):
    """An MDP drawn from the prior. The last of the `O` outcomes ends the episode where there are S + 1 of them.

    `reward` is the mean of a pair; `outcome_reward`, where there is one, that of each of its outcomes.
    """

    rows: Float[np.ndarray, "S A O"]
    reward: Float[np.ndarray, "S A"]
    reward_sd: Float[np.ndarray, "S A"]
    outcome_reward: Float[np.ndarray, "S A O"] | None = None


def draw_world(rng: np.random.Generator, prior: Prior, states: int, actions: int, terminates: bool) -> World:
    """Dirichlet rows and NormalGamma rewards, exactly as the belief assumes."""
    outcomes = states + terminates
    rows = _dirichlet(rng, prior.concentration(outcomes), (states, actions, outcomes))
    precision = rng.gamma(prior.reward_shape, 1 / prior.reward_rate, size=(states, actions))
    reward = rng.normal(prior.reward_mean, 1 / np.sqrt(prior.reward_strength * precision))
    if prior.outcome_strength is None:
        return World(rows, reward, 1 / np.sqrt(precision))
    spread = 1 / np.sqrt(prior.outcome_strength * precision)
    by_outcome = rng.normal(reward[..., None], spread[..., None], size=rows.shape)
    return World(rows, (rows * by_outcome).sum(-1), 1 / np.sqrt(precision), by_outcome)


def _dirichlet(rng: np.random.Generator, concentration: float, shape: tuple[int, ...]) -> Float[np.ndarray, "S A O"]:
    """Rows with equal concentrations. For small ones NumPy's gammas underflow; their logarithms do not.

    Gamma(a) = Gamma(a + 1) U^(1 / a).
    """
    logs = np.log(rng.standard_gamma(concentration + 1, shape)) + np.log(rng.random(shape)) / concentration
    weights = np.exp(logs - logs.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def simulate(
    rng: np.random.Generator, world: World, behaviour: Float[np.ndarray, "S A"], transitions: int
) -> Transitions:
    """A log of the behaviour policy in the world, beginning in state 0 and again after each end."""
    states, actions, _ = world.rows.shape
    cumulative, choices = np.cumsum(world.rows, axis=-1), np.cumsum(behaviour, axis=-1)
    log = np.zeros((transitions, 5))
    state = 0
    for step, (first, second, noise) in enumerate(
        zip(rng.random(transitions), rng.random(transitions), rng.normal(size=transitions), strict=True)
    ):
        action = min(int(np.searchsorted(choices[state], first, side="right")), actions - 1)
        outcome = int(np.searchsorted(cumulative[state, action], second * cumulative[state, action, -1], side="right"))
        pair_mean = world.reward[state, action]
        mean = pair_mean if world.outcome_reward is None else world.outcome_reward[state, action, outcome]
        reward = mean + world.reward_sd[state, action] * noise
        ended = outcome == states
        following = 0 if ended else outcome
        log[step] = state, action, reward, following, ended
        state = following
    columns = [log[:, 0].astype(int), log[:, 1].astype(int), log[:, 2], log[:, 3].astype(int), log[:, 4].astype(bool)]
    return Transitions.from_arrays(*columns, states=states, actions=actions)


def true_values(world: World, policy: Float[np.ndarray, "S A"], discount: float) -> Float[np.ndarray, "S"]:
    """Values of a policy in a world, by a linear solve."""
    states = len(policy)
    chain = np.einsum("sa,sat->st", policy, world.rows[..., :states])
    return np.linalg.solve(np.eye(states) - discount * chain, (policy * world.reward).sum(-1))


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
    """Repeat draw, simulate, evaluate; `options` go to `evaluate`. The target policy is drawn anew each time.

    Worlds come from `prior`; the evaluation uses `belief_prior`, which is the same unless said otherwise.

    >>> from bellief.decisions.certificates import calibrate
    >>> found = calibrate(states=2, transitions=20, simulations=5, draws=19)
    >>> found.ranks.shape, sorted(found.coverage)
    ((5,), [0.5, 0.8, 0.9, 0.95])
    """
    rng, tally = np.random.default_rng(seed), Tally()
    for number in range(simulations):
        world = draw_world(rng, prior, states, actions, terminates)
        policy = rng.dirichlet(np.ones(actions), size=states)
        data = simulate(rng, world, np.full((states, actions), 1 / actions), transitions)
        posterior = evaluate(
            data,
            policy,
            discount,
            method=method,
            prior=prior if belief_prior is None else belief_prior,
            start=0,
            draws=draws,
            seed=seed * simulations + number,
            terminates=terminates,
            **options,
        )
        tally.add(posterior, true_values(world, policy, discount)[0])
        progress((number + 1) / simulations)
    return tally.finish()


@dataclasses.dataclass(frozen=True, eq=False)
class Certificate:
    """Coverage for one size of problem: with the prior known, and as `evaluate` has it by default.

    The two differ for the prior `logged` only, whose scale `evaluate` takes from the log itself. `calibrated` judges
    the first of them, `calibrated_by_default` the second.

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
        return f"{said}, where the scale is known. With the scale from each log, as evaluate has it, they {also}."


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

    With the prior `logged`, `estimated` asks for a second pass in which the scale of rewards is taken from each log, as
    `evaluate` does.

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
    unit = UNIT_LOGGED if from_log else PRIORS[prior]
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
