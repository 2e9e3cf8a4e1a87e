"""From logged transitions to a `ValuePosterior`."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bellief.beliefs import tabular
from bellief.errors import UserError
from bellief.induction import evaluate as induction
from bellief.induction import method1, monte_carlo
from bellief.mdp import bellman
from bellief.offline.checks import check_choice, check_memory, check_numbers
from bellief.offline.diagnostics import coverage, coverage_warnings
from bellief.offline.models import SparseModels
from bellief.offline.policies import read_policy
from bellief.offline.posterior import ValuePosterior
from bellief.offline.problem import Problem, prepare
from bellief.offline.statistics import LogStatistics
from bellief.offline.transitions import Transitions
from bellief.values import joint

METHODS = ("joint", "gaussian", "histogram", "monte-carlo", "mean-mdp")

# An infinite horizon is cut where what lies beyond it weighs less than this.
TRUNCATION = 1e-3
LONGEST_LOOKAHEAD = 100_000

# Numbers of key streams apart from those of the MDPs, which count up from zero.
DRAW_STREAM, STEP_STREAM = 2**31 - 1, 2**31 - 2


def evaluate(
    data: Transitions | LogStatistics,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    method: str = "joint",
    prior: str | tabular.Prior = "paper",
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
    settings: method1.Settings | None = None,
    belief: str = "auto",
    support: Any = None,
) -> ValuePosterior:
    """Posterior distribution over the value function of `policy`, given the data and a prior over MDPs.

    Args:
        data: the logged transitions, or their statistics alone.
        policy: `uniform`, `behaviour`, `always:ACTION`, the path of a CSV file, an array [S, A], one action per state,
            or a dictionary from states to actions (or to dictionaries of probabilities).
        discount: in (0, 1]; 1 needs a horizon, or episodes that end.
        method: `joint` (ours, exact given the sampled MDPs), `gaussian` and `histogram` (the paper's Algorithm 2),
            `monte-carlo` (its Algorithm 1), or `mean-mdp` (one number: no uncertainty).
        prior: `paper`, `sparse`, or a `Prior`.
        reward_scale: size of a typical reward, in whose units the prior over rewards is meant; `data` takes the root
            mean square of the logged rewards. By default 1.
        horizon: number of steps that count; None means for ever.
        start: a state or a distribution over first states; by default the observed one.
        terminates: whether episodes can end at all; by default whether any did in the data.
        level: mass of the credible intervals that summaries show.
        seed: same seed, same result.
        mdps: sampled MDPs; by default `draws` for joint and monte-carlo, and the paper's 10 for gaussian, histogram.
        draws: value functions to return.
        lookahead: induction steps for an infinite horizon; by default enough for 99.9% of the value's weight.
        final: psi_H, where the induction starts without a horizon: `zero`, each sampled MDP's `own` infinite-horizon
            values (the default of joint and monte-carlo), or one Gaussian `pooled` over them.
        settings: choices of Method 1 for gaussian and histogram.
        belief: `dense` (every next state is possible on its own), `sparse` (observed next states, and one cell for all
            others), or `auto`: dense up to 2,000 states.
        support: the next states that are possible at all, for the sparse belief: a table (or the path of a CSV file)
            with state, next_state and optionally action, or a SciPy matrix [S, S].
    """
    check_choice("method", method, METHODS)
    check_choice("final value", final or "zero", induction.FINALS)
    check_numbers(discount, level, seed, horizon=horizon, draws=draws, mdps=mdps, lookahead=lookahead)
    if horizon is not None and final not in (None, "zero"):
        raise UserError(
            f"After a horizon of {horizon} steps nothing counts, so final cannot be '{final}': leave it out."
        )
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


def posterior_of(problem: "Questions", samples, method: str, level: float, notes: dict[str, Any]) -> ValuePosterior:
    """The posterior that consists of some draws."""
    ready = problem.ready
    return ValuePosterior(
        samples=np.asarray(samples, dtype=np.float64),
        start=ready.start,
        method=method,
        discount=ready.discount,
        actions=ready.log.actions,
        transitions=len(ready.log),
        sd_exists=problem.sd_exists(sampled=method in ("joint", "monte-carlo")),
        diagnostics=problem.diagnostics(method) | notes,
        level=level,
        state_labels=ready.log.state_labels,
    )


def _dense(ready: Problem, policy, method, final, seed, mdps, draws, lookahead, settings):
    """Values by one of the methods, with the dense belief."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        problem = _Problem(ready, policy)
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
        return problem, models.mean_values(problem.policy)[None], {"belief": "sparse"}
    return problem, models.values(problem.policy[None])[:, 0], {"belief": "sparse", "mdps": mdps}


class Questions:
    """A policy for a log, and what can be said about the two before anything is sampled."""

    def __init__(self, ready: Problem, policy: Any):
        self.ready, self.data, self.prior = ready, ready.log, ready.prior
        self.discount, self.horizon, self.start = ready.discount, ready.horizon, ready.start
        self.terminates = ready.terminates
        self.policy = read_policy(policy, ready.log)

    def sd_exists(self, sampled: bool) -> np.ndarray:
        """Whether each state's value has a posterior variance.

        A mean reward after n visits has a Student t distribution with 2 * shape + n degrees of freedom, and a variance
        only above 2. Under a Dirichlet belief every state may lead anywhere, so one bad pair reaches all states;
        within one step it reaches only its own.
        """
        states = self.data.states
        if not sampled:
            return np.ones(states, dtype=bool)
        degrees = 2 * self.prior.reward_shape + self.data.visits()
        bad = ((self.policy > 0) & (degrees <= 2)).any(-1)
        return np.logical_not(bad) if self.horizon == 1 else np.full(states, not bad.any())

    def diagnostics(self, method: str) -> dict[str, Any]:
        """What a reader of the numbers should know."""
        covered = coverage(self.ready, self.policy)
        warnings = coverage_warnings(covered)
        if method in ("joint", "monte-carlo") and not self.sd_exists(sampled=True).all():
            warnings.append("The posterior has no finite variance (a reward never observed is heavy-tailed): no sd.")
        if not self.ready.dense and self.ready.support is None and covered.unvisited:
            warnings.append(
                "The sparse belief spreads what was never tried evenly over all states, so that intervals are too "
                "narrow where the policy needs it; give a support."
            )
        if method in ("gaussian", "histogram"):
            warnings.append(
                "This value belief forgets which MDP a value came from, so its spread is far too small; use joint for "
                "intervals."
            )
        if method == "mean-mdp":
            warnings.append("The mean MDP gives one number and no uncertainty.")
        return {
            "prior": {"dirichlet": self.prior.concentration(self.data.states + self.terminates)},
            "horizon": self.horizon,
            "unvisited_pairs": len(covered.unvisited),
            "time_in_unvisited_pairs": covered.time_in_unvisited,
            "effective_visits": covered.effective_visits,
            "warnings": warnings,
        }


class _Problem(Questions):
    """Data, policy and prior turned into dense arrays, and the ways to evaluate them."""

    def __init__(self, ready: Problem, policy: Any):
        super().__init__(ready, policy)
        belief = self.data.belief(self.terminates)
        used = jnp.asarray(self.policy)
        if ((self.policy == 0) | (self.policy == 1)).all():
            belief, used = tabular.restrict(belief, jnp.argmax(used, axis=-1)), jnp.ones((self.data.states, 1))
        self.belief, self.used = belief, used
        counts = np.asarray(belief.counts)
        self.support = 1 << int((counts > 0).sum(-1).max()).bit_length()

    def _sampler(self) -> dict[str, Any]:
        """What the compiled functions below need to draw MDPs."""
        return {"belief": self.belief, "discount": self.discount, "prior": self.prior, "support": self.support}

    def _mean_mdp(self):
        return tabular.mean(self.prior, self.belief, self.discount)

    def mean_values(self):
        """Values in the mean MDP."""
        if self.horizon is None:
            return bellman.evaluate_exact(self._mean_mdp(), self.used)
        return bellman.evaluate_finite(self._mean_mdp(), self.used, self.horizon)

    def monte_carlo(self, seed: int, mdps: int, final: str, lookahead: int | None):
        """Algorithm 1: exact values, those of the horizon, or (`final="zero"`) those of the induction's steps."""
        steps = self._steps(lookahead) if final == "zero" else self.horizon
        samples = _monte_carlo(jax.random.key(seed), self.used, mdps=mdps, horizon=steps, **self._sampler())
        return samples, {"mdps": mdps} | ({"lookahead": steps, "final": final} if final == "zero" else {})

    def joint(self, seed: int, mdps: int, draws: int, lookahead: int | None, final: str):
        """The joint belief's exact steps, then draws from its mixture."""
        steps = self._steps(lookahead)
        key = jax.random.key(seed)
        check_memory(self.data.states, self.used.shape[1], tables=mdps)
        belief = _joint(key, self.used, mdps=mdps, steps=steps, final=final, **self._sampler())
        notes = {"mdps": mdps, "lookahead": steps, "final": final}
        if belief.factor.shape[1] == 0:
            return belief.mean, notes
        return joint.sample(jax.random.fold_in(key, DRAW_STREAM), belief, draws), notes

    def method1(self, seed: int, values: str, mdps: int, draws: int, lookahead, final: str, settings):
        """Algorithm 2 with one of the paper's value beliefs, then draws from psi_1."""
        check_memory(self.data.states, self.used.shape[1], tables=mdps)
        settings = method1.Settings(values=values) if settings is None else settings
        steps = self._steps(lookahead)
        key = jax.random.key(seed)
        result = _method1(
            key,
            self.used,
            self.value_span(),
            mdps=mdps,
            steps=steps,
            final=final,
            settings=settings,
            **self._sampler(),
        )
        draw_key = jax.random.fold_in(key, DRAW_STREAM)
        samples = method1.BELIEFS[settings.values].sample(draw_key, result.belief.belief, draws)
        notes = {
            "mdps": mdps,
            "lookahead": steps,
            "final": final,
            "effective_sample_size": float(jnp.mean(result.diagnostics.effective_sample_size)),
            "resamples": int(jnp.sum(result.diagnostics.resamples)),
            "sigma_doublings": int(jnp.sum(result.diagnostics.doublings)),
        }
        return samples, notes

    def value_span(self) -> float:
        """Span of possible values from the observed rewards, stretched to hold what the prior expects.

        Logged data do not tell the range of possible rewards; the prior's typical reward keeps the span positive.
        """
        prior = self.prior
        high = max(self.data.reward_high, prior.reward_mean)
        low = min(self.data.reward_low, prior.reward_mean)
        span = max(high - low, math.sqrt(prior.reward_rate / prior.reward_shape))
        steps = self._steps(None) if self.discount == 1 else 1 / (1 - self.discount)
        return span * (steps if self.horizon is None else min(steps, self.horizon))

    def _steps(self, lookahead: int | None) -> int:
        """Induction steps: the horizon, what was asked for, or enough that little weight lies beyond."""
        if self.horizon is not None:
            return self.horizon
        if lookahead is not None:
            return lookahead
        if not self.terminates:
            return math.ceil(math.log(TRUNCATION) / math.log(self.discount))
        transition = np.asarray(bellman.under_policy(self._mean_mdp(), self.used)[0]) * self.discount
        weight = np.ones(self.data.states)
        for step in range(1, LONGEST_LOOKAHEAD):
            weight = transition @ weight
            if weight.max() <= TRUNCATION:
                return step
        return LONGEST_LOOKAHEAD


_SAMPLER = ("prior", "support")


def _draw_mdps(key, count: int, belief, discount, prior, support):
    """MDPs number 0, 1, ... of the key's stream, the same ones for every method."""
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(count))
    return jax.vmap(lambda one: tabular.sample(one, prior, belief, discount, support=support))(keys)


@functools.partial(jax.jit, static_argnames=("mdps", "horizon", *_SAMPLER))
def _monte_carlo(key, policy, *, mdps, horizon, belief, discount, prior, support):
    def draw(one):
        return tabular.sample(one, prior, belief, discount, support=support)

    return monte_carlo.values(key, mdps, draw, policy, horizon)


@functools.partial(jax.jit, static_argnames=("mdps", "steps", "final", *_SAMPLER))
def _joint(key, policy, *, mdps, steps, final, belief, discount, prior, support):
    return induction.by_joint(_draw_mdps(key, mdps, belief, discount, prior, support), policy, steps, final)


@functools.partial(jax.jit, static_argnames=("mdps", "steps", "final", "settings", *_SAMPLER))
def _method1(key, policy, value_span, *, mdps, steps, final, settings, belief, discount, prior, support):
    sampled = _draw_mdps(key, mdps, belief, discount, prior, support)
    step_key = jax.random.fold_in(key, STEP_STREAM)
    return induction.by_method1(step_key, settings, sampled, policy, steps, value_span, final)
