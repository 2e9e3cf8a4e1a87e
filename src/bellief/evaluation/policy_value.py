"""From logged transitions to a `ValuePosterior`."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from bellief.errors import UserError
from bellief.evaluation import bootstrap
from bellief.evaluation.accuracy import Enough, StartDraws, until
from bellief.evaluation.diagnostics import coverage
from bellief.evaluation.knowledge import bounded, knowledge
from bellief.evaluation.logged_prior import even_name
from bellief.evaluation.posterior import ValuePosterior, errors_of
from bellief.evaluation.problem import Problem, prepare
from bellief.evaluation.question import JAX_METHODS, SAMPLED, Question
from bellief.evaluation.question_checks import check_accuracy, check_choice, check_numbers
from bellief.evaluation.value_moments import matched_draws, roughness, second_order
from bellief.logs import FeatureTransitions, as_log, as_transitions
from bellief.priors import Prior
from bellief.registry import METHODS

FINALS = ("zero", "own", "pooled")

# Methods whose answer includes what holds under any prior.
KNOWING = ("joint", "monte-carlo", "bootstrap")


def evaluate(
    data: Any,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    method: str = "joint",
    prior: str | Prior = "logged",
    reward_scale: float | str | None = None,
    horizon: int | None = None,
    start: int | str | Float[np.ndarray, "S"] | None = None,
    terminates: bool | None = None,
    level: float = 0.9,
    seed: int = 0,
    mdps: int | None = None,
    draws: int = 1000,
    accuracy: float | None = None,
    lookahead: int | None = None,
    final: str | None = None,
    settings: Any = None,
    belief: str | None = None,
    support: Any = None,
    reward_range: tuple[float, float] | None = None,
) -> ValuePosterior:
    """Posterior distribution over the value function of `policy`, given the data and a prior over MDPs.

    Args:
        data: a log: `Transitions`, a `Tally`, a path, a pandas, Polars or Arrow table (see `bellief.logs.as_tally`).
            Where states are vectors see `evaluate_features`.
        policy: `uniform`, `behaviour`, `always:ACTION`, the path of a CSV file, an array [S, A], one action per state,
            or a dictionary from states to actions (or to dictionaries of probabilities).
        discount: in (0, 1]; 1 needs a horizon, or episodes that end.
        method: `joint` (ours: values in sampled MDPs, with summaries that use the exact law of their linear part),
            `moments` (closed form to second order, without sampling), `bootstrap` (episodes drawn again and a model
            fitted to them: no prior is used; needs rows, not a tally), `gaussian` and `histogram` (the paper's
            Algorithm 2), `method2` and `method3` (its other two methods, in the stationary case),
            `monte-carlo` (its Algorithm 1), or `mean-mdp` (one number: no uncertainty).
        prior: `logged` (unseen outcomes where the state leads, rewards as the log's outcomes pay), `logged-0.1` (the
            default of version 0.1: unseen outcomes anywhere; that of the paper's methods, too), `paper`, `sparse`, or
            a `Prior`.
        reward_scale: for priors other than `logged`, the size of a typical reward, in whose units they are meant;
            `data` takes the root mean square of the logged rewards. By default 1.
        horizon: number of steps that count; None means an infinite horizon.
        start: a state or a distribution over first states; by default the observed one.
        terminates: whether episodes can end at all; by default whether any did in the data.
        level: mass of the credible intervals that summaries show.
        seed: same seed, same result.
        mdps: sampled MDPs; by default `draws` for joint and monte-carlo, the paper's 10 for gaussian and histogram,
            and 1,000 for method2 and method3.
        draws: value functions to return.
        accuracy: for joint and monte-carlo, instead of draws: as many as make the Monte Carlo errors of the interval's
            ends at most this share of its width.
        lookahead: induction steps for an infinite horizon; by default enough for 99.9% of the value's weight. Ignored
            unless the induction starts at `zero` or `pooled`: an MDP's own values need no steps.
        final: psi_H, where the induction starts without a horizon: `zero`, each sampled MDP's `own` infinite-horizon
            values (the default of joint and monte-carlo), or one Gaussian `pooled` over them.
        settings: `method1.Settings` for gaussian and histogram, `stationary.Settings` for method2 and method3,
            `FeatureSettings` where states are vectors.
        belief: has no effect any more; accepted until the next version.
        support: the next states that are possible at all: a table (or the path of a CSV file) with state, next_state
            and optionally action, or a SciPy matrix [S, S].
        reward_range: the smallest and the largest reward that are possible; mean rewards never leave it.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0, 1] * 20, [0, 0] * 20, [2.0, 0.0] * 20, [1, 0] * 20)
    >>> value = bellief.evaluate(data, discount=0.5, draws=100)
    >>> low, high = value.interval(0.9)
    >>> bool(low[0] < 8 / 3 < high[0])  # two every other step, halved at each: 2 / (1 - 1/4)
    True
    """
    check_accuracy(accuracy)
    rows = as_transitions(data) if method == "bootstrap" else None
    data = as_log(data if rows is None else rows)
    if isinstance(data, FeatureTransitions):
        from bellief.evaluation.feature_evaluation import evaluate_features

        _refuse_given(
            reward_scale=reward_scale, terminates=terminates, mdps=mdps, lookahead=lookahead, final=final,
            support=support, belief=belief, reward_range=reward_range, accuracy=accuracy,
        )  # fmt: skip
        other: Any = prior  # of the linear-Gaussian belief
        return evaluate_features(
            data, policy, discount, method=method, prior=other, horizon=horizon, start=start, level=level, seed=seed,
            draws=draws, settings=settings,
        )  # fmt: skip
    if hasattr(settings, "dynamics"):  # `FeatureSettings`, whose module is slow to import
        raise UserError("The states of this log are counted, for which feature settings mean nothing: leave them out.")
    check_choice("method", method, METHODS)
    check_choice("final value", final or "zero", FINALS)
    check_numbers(discount, level, seed, horizon=horizon, draws=draws, mdps=mdps, lookahead=lookahead)
    if accuracy is not None and (method not in ("joint", "monte-carlo") or final == "pooled"):
        raise UserError("An accuracy is for joint and monte-carlo, which can draw more: leave it out, or name draws.")
    if method == "moments" and not (horizon is None and final is None and lookahead is None and reward_range is None):
        raise UserError("moments knows the infinite horizon: leave out horizon, lookahead, final and reward_range.")
    if horizon is not None and final not in (None, "zero"):
        raise UserError(
            f"After a horizon of {horizon} steps nothing counts, so final cannot be '{final}': leave it out."
        )
    if method in ("method2", "method3") and (horizon is not None or final is not None or lookahead is not None):
        raise UserError(f"{method} finds the infinite-horizon value directly: leave out horizon, lookahead and final.")
    needs_jax = method in JAX_METHODS or final == "pooled"
    if needs_jax:
        prior = _even(prior, method)
    ready = prepare(
        data, discount, prior=prior, reward_scale=reward_scale, horizon=horizon, start=start, terminates=terminates,
        belief=belief, support=support, reward_range=None if needs_jax else reward_range, draws=mdps or draws,
    )  # fmt: skip
    if needs_jax:
        from bellief.evaluation import paper_methods

        question, samples, notes = paper_methods.evaluate(
            ready, policy, method, final, seed, mdps, draws, lookahead, settings
        )
    elif rows is not None:
        question = Question(ready, policy)
        found = bootstrap.evaluate(ready, rows, question.policy, mdps or draws, seed, own_start=start is None)
        value = posterior_of(question, found.values, method, level, {"mdps": mdps or draws}, seed)
        return dataclasses.replace(value, start_draws=found.start)
    else:
        question = Question(ready, policy)
        if method == "moments":
            return _moments(question, level, seed, draws)
        if method != "mean-mdp":
            return _drawn(question, method, final, seed, mdps or draws, lookahead, accuracy, level)
        samples = ready.mean_mdp.values(question.policy, ready.discount, ready.horizon, ready.shared_reward)[None]
        notes = {}
    return posterior_of(question, samples, method, level, notes, seed)


def _even(prior: str | Prior, method: str) -> str | Prior:
    """The paper's value beliefs know tables of all outcomes, and one end."""
    if isinstance(prior, Prior) and prior.state_weight is not None:
        raise UserError(f"The prior's state_weight is for joint and monte-carlo; {method} takes a prior without one.")
    return even_name(prior)


def _moments(question: Question, level: float, seed: int, draws: int) -> ValuePosterior:
    """Closed forms, and draws that have them."""
    moments = second_order(question.ready, question.policy)
    rough = roughness(moments)
    samples = matched_draws(moments, seed, draws)
    notes = {"inaccurate": [] if rough is None else [rough]}
    value = posterior_of(question, samples[:, :-1], "moments", level, notes, seed)
    return dataclasses.replace(value, start_draws=samples[:, -1])


def _drawn(
    question: Question,
    method: str,
    final: str | None,
    seed: int,
    mdps: int,
    lookahead: int | None,
    accuracy: float | None,
    level: float,
) -> ValuePosterior:
    """Values in sampled MDPs, each solved separately.

    With psi_H a point for each MDP the joint belief is Monte Carlo over the MDPs; with psi_H at their own values every
    step of the induction changes nothing, and the exact solution is all there is to compute.
    """
    ready: Problem = question.ready
    notes: dict[str, Any] = {}
    horizon = ready.horizon
    if final == "zero" and horizon is None:
        horizon = question.steps(lookahead)
        notes |= {"lookahead": horizon, "final": final}
    drawn = StartDraws(ready, question.policy[None], seed, horizon, helped=method == "joint")

    def summarise() -> Enough:
        start, linear = drawn.start()
        law = drawn.laws(start, linear, np.ones((1, 1)))[0]
        return Enough((start[:, 0], law), [errors_of(start[:, 0], level, law)])

    found, warning = until(drawn, mdps, accuracy, summarise)
    start, law = found
    notes |= {"mdps": len(start), "inaccurate": [] if warning is None else [warning]}
    value = posterior_of(question, drawn.values[:, 0], method, level, notes, seed, start)
    # Draws without end were bounded; the law does not include these bounds.
    return value if value.diagnostics.get("endless") else dataclasses.replace(value, start_law=law)


def posterior_of(
    question: Question, samples, method: str, level: float, notes: dict[str, Any], seed: int, start=None
) -> ValuePosterior:
    """The posterior that consists of some draws; those of the first states depend on the seed.

    `start` are the draws' start values, where they are known already.
    """
    ready = question.ready
    samples = np.where(ready.only_ends, 0.0, np.asarray(samples, dtype=np.float64))
    samples, endless = bounded(ready, samples, samples @ ready.start, level, "the policy")
    if ready.start_count is None or method not in SAMPLED:
        start = None
    elif start is None or endless:
        start = ready.start_values(samples, seed)
    if endless:
        notes = notes | {"endless": endless}
    covered = coverage(ready, question.policy)
    if method in KNOWING:
        known = knowledge(ready, question.policy, covered.time, seed, level)
        bounds = None if known.bounds is None else list(known.bounds)
        notes = notes | {"supported": known.supported, "bounds": bounds, "cannot_tell": known.cannot_tell}
    return ValuePosterior(
        samples=samples,
        start=ready.start,
        method=method,
        discount=ready.discount,
        actions=ready.log.actions,
        transitions=len(ready.log),
        sd_exists=question.sd_exists(sampled=method in SAMPLED) & (not endless),
        diagnostics=question.diagnostics(method, notes, covered),
        level=level,
        state_labels=ready.log.state_labels,
        ends=ready.only_ends,
        start_draws=start,
    )


def _refuse_given(**options: Any) -> None:
    """Options that have no meaning for the belief about states that are vectors."""
    for name, value in options.items():
        if value is not None:
            raise UserError(f"The states of this log are vectors, for which {name} means nothing: leave it out.")
