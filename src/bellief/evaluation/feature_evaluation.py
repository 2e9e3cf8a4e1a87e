"""The value of a policy where states are vectors: a log, the linear-Gaussian belief, a `ValuePosterior`."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bellief.beliefs import ending, linear
from bellief.errors import UserError
from bellief.evaluation.feature_belief import boundary, learn
from bellief.evaluation.feature_policies import FeaturePolicy, read_feature_policy
from bellief.evaluation.feature_priors import described, read_prior
from bellief.evaluation.posterior import ValuePosterior, interval
from bellief.evaluation.question_checks import check_choice, check_numbers, steps_that_count
from bellief.features import parse
from bellief.induction import evaluate_box
from bellief.logs.feature_log import FeatureTransitions, Units, units_of
from bellief.logs.labels import name_of
from bellief.mdp.linear_mdp import Form

# The first two are one and the same: the value of every sampled model by rollouts, kept with its model.
METHODS = ("joint", "monte-carlo", "fitted")

# An infinite horizon is cut where what lies beyond it weighs less than this, in rollouts and in fitted values.
TRUNCATION, FITTED_TRUNCATION = 1e-3, 1e-6
# States of the log that values are fitted at (more where there are many features) and that starts are averaged over.
FEWEST_STATES, STARTS = 64, 64
# Models that are computed at once, and that fitted values are checked with: starts, and rollouts of each.
BATCH, CHECK_STARTS, CHECK_ROLLOUTS = 20, 16, 32
# Rollouts are repeated up to so many times while more than the first share of the draws' variance is their noise; more
# than the second share causes a warning.
MOST_REPEATS, SMALL_NOISE, MOST_NOISE = 8, 0.2, 0.5
# Number of the key stream of rollouts; models count up from zero.
ROLLOUT_STREAM = 2**30
# With more features than this, quadratic functions of them are too many to be the default.
MOST_SQUARED = 6


@dataclasses.dataclass(frozen=True)
class FeatureSettings:
    """Features, dynamics and rollouts for a log whose states are vectors.

    Descriptions of features are those of `bellief.features` (for example `constant+raw+rbf:4`), of states in the units
    of the log. `dynamics` is `difference` (what a step adds to the state is linear in the features) or `direct` (the
    next state is). `termination` says of a single state whether it ends an episode; without it the end is learned.
    `rollouts` of every model stand behind each of its values, up to eight times as many where their noise is large.

    >>> import bellief
    >>> bellief.FeatureSettings(features="constant+raw+rbf:4").dynamics
    'difference'
    """

    dynamics: str = "difference"
    features: str = "constant+raw"
    reward_features: str | None = None
    value_features: str | None = None
    termination: Callable[..., Any] | None = None
    rollouts: int = 256

    def described(self, kind: str, dimension: int) -> str:
        """The description of one of the three kinds of features; by default quadratic ones."""
        usual = "constant+poly:2" if dimension <= MOST_SQUARED else "constant+raw"
        return getattr(self, kind) or usual


def evaluate_features(
    log: FeatureTransitions,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    method: str = "joint",
    prior: str | linear.Prior = "logged",
    horizon: int | None = None,
    start: Any = None,
    at: Any = None,
    level: float = 0.9,
    seed: int = 0,
    draws: int = 1000,
    settings: FeatureSettings | None = None,
    units: Units | None = None,
    check: bool = True,
) -> ValuePosterior:
    """Posterior over the value of `policy` from the start, and in the states `at`, one draw for each sampled model.

    Models come from the linear-Gaussian belief of the paper's continuous case. `joint` (or `monte-carlo`, the same
    here) rolls every model out. `fitted` fits the value of each model by the induction, which is faster and as accurate
    as the value features allow: `check` compares it with rollouts of some of the models.

    >>> import numpy as np
    >>> import bellief
    >>> states = np.sin(np.arange(41.0))[:, None]
    >>> log = bellief.Transitions.from_arrays(states[:-1], [0, 1] * 20, states[:-1, 0], states[1:])
    >>> few = bellief.FeatureSettings(rollouts=4)
    >>> value = bellief.evaluate_features(log, discount=0.5, horizon=5, draws=20, settings=few)
    >>> value.samples.shape[0], bool(np.isfinite(value.samples).all())
    (20, True)
    """
    settings = FeatureSettings() if settings is None else settings
    check_choice("method for states that are vectors", method, METHODS)
    check_numbers(discount, level, seed, horizon=horizon, draws=draws, rollouts=settings.rollouts)
    if discount == 1 and horizon is None:
        raise UserError("With discount 1 and states that are vectors give a horizon, or a discount below 1.")
    given = read_prior(prior)
    dimension = log.state.shape[1]
    first = _first_states(log) if start is None else read_states(start, log, "start")
    asked = np.zeros((0, dimension)) if at is None else read_states(at, log, "at")
    labels = [", ".join(f"{number:.4g}" for number in state) for state in asked]
    if len(set(labels)) < len(labels):
        raise UserError("Some of the states asked for are equal; give each of them once.")
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        chosen = read_feature_policy(policy, log)
        units = units_of(log) if units is None else units
        form = linear.make_form(
            settings.dynamics,
            *(parse(settings.described(kind, dimension), dimension) for kind in ("features", "reward_features")),
        )
        value = parse(settings.described("value_features", dimension), dimension)
        cut = FITTED_TRUNCATION if method == "fitted" else TRUNCATION
        steps = (
            math.ceil(math.log(cut) / math.log(discount)) if horizon is None else steps_that_count(discount, horizon)
        )
        box = evaluate_box.Settings(features=value, horizon=steps, discount=discount, ridge=1e-9)
        problem = _Problem(log, units, form, box, chosen, settings.termination, given)
        rollouts = None if method == "fitted" else settings.rollouts
        samples, noise = problem.start_values(seed, first, draws, rollouts)
        if len(asked):
            others, _ = problem.values(seed, asked, draws, rollouts)
            samples = np.append(samples, others, axis=1)
        notes = problem.notes(samples[:, 0], steps, horizon) | {"rollout_noise": noise}
        notes["warnings"] += _noise_warning(noise)
        if method == "fitted" and check:
            rolled = problem.draws(seed, first[:CHECK_STARTS], min(draws, BATCH), CHECK_ROLLOUTS)
            fitted = problem.draws(seed, first[:CHECK_STARTS], draws, None)
            notes["warnings"] += _fit_warning(fitted, rolled, level, notes)
    return ValuePosterior(
        samples=samples,
        start=np.eye(1, samples.shape[1])[0],
        method=method,
        discount=float(discount),
        actions=log.actions,
        transitions=len(log),
        sd_exists=np.full(samples.shape[1], problem.has_variance(horizon)),
        diagnostics={"prior": described(given), "horizon": horizon, "mdps": draws} | notes,
        level=level,
        state_labels=("start", *labels),
    )


def _first_states(log: FeatureTransitions) -> Float[np.ndarray, "n D"]:
    """First states of episodes, evenly chosen where there are many."""
    first = log.state[log.first]
    return first[np.unique(np.linspace(0, len(first) - 1, min(len(first), STARTS)).astype(int))]


def read_states(given: Any, log: FeatureTransitions, name: str) -> Float[np.ndarray, "n D"]:
    """States in any accepted form: an array, or text with commas between numbers and semicolons between states."""
    if isinstance(given, str):
        given = [part.split(",") for part in given.split(";")]
    try:
        states = np.atleast_2d(np.asarray(given, dtype=np.float64))
    except (ValueError, TypeError):
        states = np.zeros((0, 0))
    if states.ndim != 2 or states.shape[1] != log.state.shape[1] or not np.isfinite(states).all():
        raise UserError(
            f"{name} must be states of {log.state.shape[1]} finite numbers ({', '.join(log.feature_names[:6])})."
        )
    return states


class _Problem:
    """A log in its units, with the belief that it leads to."""

    def __init__(self, log, units: Units, form: Form, box, policy: FeaturePolicy, termination, prior):
        self.log, self.units, self.form, self.box, self.policy = log, units, form, box, policy
        self.termination = termination
        state, following = units.standard(log.state), units.standard(log.next_state)
        self.belief = learn(log, units, form, prior, state, following)
        self.visits = np.bincount(log.action, minlength=log.actions)
        self.learned = termination is None and bool(log.terminated.any())
        self.boundary = boundary(following, log.terminated, units.bounds) if self.learned else None
        # A rule with points at +-sqrt(D) along each axis has the mean of any cubic function of the noise.
        dimension = state.shape[1]
        fewest = max(FEWEST_STATES, 3 * box.features.size(dimension))
        states = state[np.linspace(0, len(state) - 1, fewest).astype(int)]
        points = np.sqrt(dimension) * np.concatenate([np.eye(dimension), -np.eye(dimension)])
        self.states = jnp.asarray(np.repeat(states, len(points), axis=0))
        self.normals = jnp.asarray(np.tile(points, (len(states), 1)))

    def start_values(self, seed: int, first, count: int, rollouts: int | None) -> tuple[np.ndarray, float]:
        """Values averaged over first states; so many rollouts are shared among them."""
        each = None if rollouts is None else -(-rollouts // len(first))
        return self.values(seed, first, count, each, np.full((len(first), 1), 1 / len(first)))

    def values(self, seed: int, states, count: int, rollouts: int | None, mix=None) -> tuple[np.ndarray, float]:
        """Draws of values (mixed by `mix`), and the largest share of their variance that was the noise of rollouts.

        Two independent halves separate that noise from the differences between models, and the spread is corrected for
        it; where it is large, more rollouts are made first.
        """
        mix = np.eye(len(states)) if mix is None else mix
        if rollouts is None:
            return self.draws(seed, states, count, None) @ mix, 0.0
        # At least a mirrored pair in each half.
        half = 2 * -(-rollouts // 4)
        sums, repeats = [np.zeros((count, mix.shape[1])) for _ in range(2)], 0
        while True:
            for number in range(repeats, max(1, 2 * repeats)):
                for place in (0, 1):
                    sums[place] += self.draws(seed, states, count, half, 2 * number + place) @ mix
            repeats = max(1, 2 * repeats)
            found, noise = _without_noise(*(part / repeats for part in sums))
            if noise <= SMALL_NOISE or repeats >= MOST_REPEATS:
                return found, noise

    def draws(self, seed: int, states, count: int, rollouts: int | None, half: int = 0) -> np.ndarray:
        """Values of the states in models number 0, 1, ... of the seed's stream; fitted ones without rollouts.

        Another `half` has other rollouts of the same models.
        """
        queries = jnp.asarray(self.units.standard(states))
        key, groups = jax.random.key(seed), -(-count // BATCH)
        found = np.zeros((groups * BATCH, len(queries)))
        for group in range(groups):
            part = slice(group * BATCH, (group + 1) * BATCH)
            found[part] = _values(
                jax.random.fold_in(jax.random.fold_in(key, ROLLOUT_STREAM + half), group),
                _models(key, self.belief, jnp.arange(part.start, part.stop)),
                self.policy.weights,
                self.boundary,
                (jnp.asarray(self.units.location), jnp.asarray(self.units.scale)),
                (self.states, self.normals),
                queries,
                form=self.form,
                box=self.box,
                choose=self.policy.choose,
                termination=self.termination,
                rollouts=rollouts,
            )
        found = found[:count] * self.units.reward
        wild = int((~np.isfinite(found)).any(1).sum())
        if wild:
            raise UserError(
                f"In {wild} of {count} sampled models the value is not finite: the log leaves it open whether states "
                "run away. Give a shorter horizon, a lower discount, more transitions, or a stronger prior."
            )
        return found

    def has_variance(self, horizon: int | None) -> bool:
        """A value over H steps is a polynomial of degree H in weights that have Student t distributions.

        Without a horizon, models in which states diverge have positive probability, and then no moment exists.
        """
        degrees = float(np.asarray(self.belief.transitions.degrees).min()) - self.units.location.size + 1
        return horizon is not None and degrees > 2 * horizon

    def notes(self, values: np.ndarray, steps: int, horizon: int | None) -> dict[str, Any]:
        """Diagnostics and warnings."""
        log, warnings = self.log, [self.policy.note] if self.policy.note else []
        some = jnp.asarray(log.state[:: len(log) // 100 + 1])
        probabilities = np.asarray(jax.vmap(lambda one: self.policy.choose(self.policy.weights, one))(some))
        untried = [a for a in np.flatnonzero(self.visits == 0) if probabilities[:, a].max() > 0]
        if untried:
            names = ", ".join(name_of(int(action), log.action_labels) for action in untried[:3])
            warnings.append(f"The policy may take actions absent from the data ({names}): there the prior dominates.")
        limit = (
            10 * np.abs(log.reward).max() * min(steps, 1 / (1 - self.box.discount) if self.box.discount < 1 else steps)
        )
        runaway = float((np.abs(values) > limit).mean())
        if runaway > 0.01:
            warnings.append(
                f"In {runaway:.1%} of the sampled models values exceed ten times anything the rewards would allow: "
                "states run away there. Collect more transitions, or give a horizon."
            )
        if not self.has_variance(horizon):
            warnings.append("The posterior has no finite variance (states may run away in some worlds): no sd.")
        if self.learned:
            warnings.append("Where episodes end is learned as one boundary, taken as if it were known.")
        return {"features": list(log.feature_names), "runaway_models": runaway, "warnings": warnings}


@jax.jit
def _models(key, belief, numbers):
    """Models with these numbers in the key's stream."""
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(numbers)
    return jax.vmap(lambda one: linear.sample(one, belief))(keys)


@functools.partial(jax.jit, static_argnames=("form", "box", "choose", "termination", "rollouts"))
def _values(key, models, weights, boundary, units, fitted_at, queries, *, form, box, choose, termination, rollouts):
    location, scale = units
    states, normals = fitted_at

    def policy(state):
        return choose(weights, location + scale * state)

    def end(state):
        if termination is not None:
            return jnp.asarray(termination(location + scale * state), state.dtype)
        return jnp.zeros((), state.dtype) if boundary is None else ending.probability(boundary, state)

    if rollouts is not None:
        return evaluate_box.by_roll_outs(key, box, form, models, policy, end, queries, rollouts)
    problem = evaluate_box.Problem(models, models.bounds[0], states)
    return evaluate_box.evaluate(key, box, form, problem, policy, end, queries, normals=normals)


def _without_noise(one: Float[np.ndarray, "N q"], other: Float[np.ndarray, "N q"]) -> tuple[np.ndarray, float]:
    """The average of two noisy halves with their spread shrunk to what models differ by, and the noise's share.

    Scales are interquartile ranges, which a few models with huge values do not move.
    """
    both = (one + other) / 2
    middle = np.median(both, axis=0)
    noise, spread = (np.subtract(*np.quantile(values, [0.75, 0.25], axis=0)) for values in ((one - other) / 2, both))
    share = np.divide(noise**2, spread**2, out=np.zeros_like(noise), where=spread > 0)
    return middle + (both - middle) * np.sqrt(np.clip(1 - share, 0, 1)), float(share.max())


def _noise_warning(share: float) -> list[str]:
    if share < MOST_NOISE:
        return []
    return [
        f"{min(share, 1):.0%} of the variance of the draws was the noise of rollouts; it was taken out again, which is "
        "rough when it is so much: ask for more rollouts (FeatureSettings), or method fitted."
    ]


def _fit_warning(found: np.ndarray, rolled: np.ndarray, level: float, notes: dict[str, Any]) -> list[str]:
    """Whether fitted values of some models agree with rollouts of the same models, against the interval's width."""
    gap = found[: len(rolled), : rolled.shape[1]].mean(1) - rolled.mean(1)
    low, high = interval(found.mean(1), level)
    width = float(high - low)
    # The average over models separates the errors of the fit from those of the rollouts.
    notes["fit_error"] = error = abs(float(gap.mean()))
    if error - 2 * float(gap.std()) / math.sqrt(len(gap)) <= 0.1 * width:
        return []
    return [
        f"Fitted values of {len(rolled)} models differ from rollouts of the same models by {error:.3g} on average, "
        f"{error / width:.0%} of the interval's width: use other value features, or method joint."
    ]
