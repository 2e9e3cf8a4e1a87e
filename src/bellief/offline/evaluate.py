"""From logged transitions to a `ValuePosterior`."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from bellief.beliefs import tabular
from bellief.errors import UserError
from bellief.induction import evaluate as induction
from bellief.logs.feature_log import FeatureTransitions
from bellief.logs.tally import LogStatistics
from bellief.logs.transitions import Transitions
from bellief.offline.checks import check_choice, check_numbers
from bellief.offline.dense import SAMPLED, DenseProblem, Questions
from bellief.offline.linked import LINKED, evaluate_linked
from bellief.offline.models import SparseModels
from bellief.offline.posterior import ValuePosterior
from bellief.offline.problem import Problem, prepare

METHODS = ("joint", "gaussian", "histogram", "method2", "method3", "monte-carlo", "mean-mdp")


def evaluate(
    data: Transitions | LogStatistics,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    method: str = "joint",
    prior: str | tabular.Prior = "logged",
    reward_scale: float | str | None = None,
    horizon: int | None = None,
    start: int | str | Float[np.ndarray, "S"] | None = None,
    terminates: bool | None = None,
    level: float = 0.9,
    seed: int = 0,
    mdps: int | None = None,
    draws: int = 1000,
    lookahead: int | None = None,
    final: str | None = None,
    settings: Any = None,
    belief: str = "auto",
    support: Any = None,
) -> ValuePosterior:
    """Posterior distribution over the value function of `policy`, given the data and a prior over MDPs.

    Args:
        data: the logged transitions, or their statistics alone. Where states are vectors see `evaluate_features`.
        policy: `uniform`, `behaviour`, `always:ACTION`, the path of a CSV file, an array [S, A], one action per state,
            or a dictionary from states to actions (or to dictionaries of probabilities).
        discount: in (0, 1]; 1 needs a horizon, or episodes that end.
        method: `joint` (ours, exact given the sampled MDPs), `gaussian` and `histogram` (the paper's Algorithm 2),
            `method2` and `method3` (its other two methods, in the stationary case), `monte-carlo` (its Algorithm 1), or
            `mean-mdp` (one number: no uncertainty).
        prior: `logged` (light rows, rewards by outcome and in the log's own scale), `paper`, `sparse`, or a `Prior`.
        reward_scale: for priors other than `logged`, the size of a typical reward, in whose units they are meant;
            `data` takes the root mean square of the logged rewards. By default 1.
        horizon: number of steps that count; None means for ever.
        start: a state or a distribution over first states; by default the observed one.
        terminates: whether episodes can end at all; by default whether any did in the data.
        level: mass of the credible intervals that summaries show.
        seed: same seed, same result.
        mdps: sampled MDPs; by default `draws` for joint and monte-carlo, the paper's 10 for gaussian and histogram,
            and 1,000 for method2 and method3.
        draws: value functions to return.
        lookahead: induction steps for an infinite horizon; by default enough for 99.9% of the value's weight. Ignored
            unless the induction starts at `zero` or `pooled`: an MDP's own values need no steps.
        final: psi_H, where the induction starts without a horizon: `zero`, each sampled MDP's `own` infinite-horizon
            values (the default of joint and monte-carlo), or one Gaussian `pooled` over them.
        settings: `method1.Settings` for gaussian and histogram, `stationary.Settings` for method2 and method3,
            `FeatureSettings` where states are vectors.
        belief: `dense` (every next state is possible on its own), `sparse` (observed next states, and one cell for all
            others), or `auto`: dense up to 2,000 states.
        support: the next states that are possible at all, for the sparse belief: a table (or the path of a CSV file)
            with state, next_state and optionally action, or a SciPy matrix [S, S].

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0, 1] * 20, [0, 0] * 20, [2.0, 0.0] * 20, [1, 0] * 20)
    >>> value = bellief.evaluate(data, discount=0.5, draws=100)
    >>> low, high = value.interval(0.9)
    >>> bool(low[0] < 8 / 3 < high[0])  # two every other step, halved at each: 2 / (1 - 1/4)
    True
    """
    if isinstance(data, FeatureTransitions):
        given = {"reward_scale": reward_scale, "terminates": terminates, "mdps": mdps, "lookahead": lookahead}
        given |= {"final": final, "support": support, "belief": None if belief == "auto" else belief}
        return _features(
            given, data, policy, discount, method=method, prior=prior, horizon=horizon, start=start, level=level,
            seed=seed, draws=draws, settings=settings,
        )  # fmt: skip
    check_choice("method", method, METHODS)
    check_choice("final value", final or "zero", induction.FINALS)
    check_numbers(discount, level, seed, horizon=horizon, draws=draws, mdps=mdps, lookahead=lookahead)
    if horizon is not None and final not in (None, "zero"):
        raise UserError(
            f"After a horizon of {horizon} steps nothing counts, so final cannot be '{final}': leave it out."
        )
    if method in LINKED and (horizon is not None or final is not None or lookahead is not None):
        raise UserError(f"{method} finds the value for ever at once: leave out horizon, lookahead and final.")
    ready = prepare(
        data,
        discount,
        prior=prior,
        reward_scale=reward_scale,
        horizon=horizon,
        start=start,
        terminates=terminates,
        belief=belief,
        support=support,
        draws=mdps or draws,
    )
    if ready.dense:
        problem, samples, notes = _dense(ready, policy, method, final, seed, mdps, draws, lookahead, settings)
    else:
        problem, samples, notes = _sparse(ready, policy, method, final, seed, mdps or draws)
    return posterior_of(problem, samples, method, level, notes)


def posterior_of(problem: Questions, samples, method: str, level: float, notes: dict[str, Any]) -> ValuePosterior:
    """The posterior that consists of some draws."""
    ready = problem.ready
    return ValuePosterior(
        samples=np.asarray(samples, dtype=np.float64),
        start=ready.start,
        method=method,
        discount=ready.discount,
        actions=ready.log.actions,
        transitions=len(ready.log),
        sd_exists=problem.sd_exists(sampled=method in SAMPLED),
        diagnostics=problem.diagnostics(method, notes),
        level=level,
        state_labels=ready.log.state_labels,
    )


def _features(given: dict[str, Any], *arguments: Any, **options: Any) -> ValuePosterior:
    """States that are vectors have a belief of their own, and options that mean nothing there are refused."""
    from bellief.offline.features import evaluate_features

    for name, value in given.items():
        if value is not None:
            raise UserError(f"The states of this log are vectors, for which {name} means nothing: leave it out.")
    return evaluate_features(*arguments, **options)


def _dense(ready: Problem, policy, method, final, seed, mdps, draws, lookahead, settings):
    """Values by one of the methods, with the dense belief."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        problem = DenseProblem(ready, policy, by_pair=method in LINKED)
        if method in LINKED:
            return problem, *evaluate_linked(problem, seed, method, mdps or 1000, draws, settings)
        if method == "mean-mdp":
            return problem, problem.mean_values()[None], {}
        if method == "joint" and final == "pooled":
            return problem, *problem.joint(seed, mdps or draws, draws, lookahead, final)
        if method in ("joint", "monte-carlo"):
            # With psi_H a point for each MDP the joint belief is Monte Carlo, which keeps few MDPs in memory at a time;
            # with psi_H at their own values every step changes nothing, and the exact solution is all there is to do.
            return problem, *problem.monte_carlo(seed, mdps or draws, final or "own", lookahead)
        return problem, *problem.method1(seed, method, mdps or 10, draws, lookahead, final or "zero", settings)


def _sparse(ready: Problem, policy, method, final, seed, mdps):
    """Values in sampled MDPs, or in the mean MDP, with the sparse belief."""
    if method not in ("joint", "monte-carlo", "mean-mdp") or final not in (None, "own"):
        raise UserError(
            "With the sparse belief the method must be joint, monte-carlo or mean-mdp, and final be left out: these "
            "solve every sampled MDP by itself; for other methods ask for the dense belief."
        )
    problem = Questions(ready, policy)
    models = SparseModels(ready, seed, mdps)
    if method == "mean-mdp":
        return problem, models.mean_values(problem.policy)[None], {}
    return problem, models.values(problem.policy[None])[:, 0], {"mdps": mdps}
