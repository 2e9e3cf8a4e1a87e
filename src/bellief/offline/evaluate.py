"""From logged transitions to a `ValuePosterior`."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bellief.beliefs import outcomes, tabular
from bellief.errors import UserError
from bellief.induction import evaluate as induction
from bellief.induction import method1, monte_carlo
from bellief.mdp import bellman
from bellief.offline.checks import check_choice, check_memory, check_numbers
from bellief.offline.linked import LINKED, evaluate_linked
from bellief.offline.policies import read_policy
from bellief.offline.posterior import ValuePosterior
from bellief.offline.priors import read_prior
from bellief.offline.sampling import DRAW_STREAM, SAMPLER, STEP_STREAM, belief_from, draw_mdps, sample_mdp
from bellief.offline.transitions import Transitions
from bellief.values import joint

METHODS = ("joint", "gaussian", "histogram", "method2", "method3", "monte-carlo", "mean-mdp")

# An infinite horizon is cut where what lies beyond it weighs less than this.
TRUNCATION = 1e-3
LONGEST_LOOKAHEAD = 100_000


def evaluate(
    data: Transitions,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    method: str = "joint",
    prior: str | tabular.Prior = "logged",
    horizon: int | None = None,
    start: int | Float[np.ndarray, "S"] | None = None,
    terminates: bool | None = None,
    level: float = 0.9,
    seed: int = 0,
    mdps: int | None = None,
    draws: int = 1000,
    lookahead: int | None = None,
    final: str | None = None,
    settings: Any = None,
) -> ValuePosterior:
    """Posterior distribution over the value function of `policy`, given the data and a prior over MDPs.

    Args:
        data: the logged transitions.
        policy: `uniform`, `behaviour`, the path of a CSV file, an array [S, A], or one action per state.
        discount: in (0, 1]; 1 needs a horizon, or episodes that end.
        method: `joint` (ours, exact given the sampled MDPs), `gaussian` and `histogram` (the paper's Algorithm 2),
            `method2` and `method3` (its other two methods, in the stationary case), `monte-carlo` (its Algorithm 1), or
            `mean-mdp` (one number: no uncertainty).
        prior: `logged` (light rows, rewards by outcome and in the log's own scale), `paper`, `sparse`, or a `Prior`.
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
        settings: `method1.Settings` for gaussian and histogram, `stationary.Settings` for method2 and method3.
    """
    check_choice("method", method, METHODS)
    check_choice("final value", final or "zero", induction.FINALS)
    check_numbers(discount, level, seed, horizon=horizon, draws=draws, mdps=mdps, lookahead=lookahead)
    if horizon is not None and final not in (None, "zero"):
        raise UserError(
            f"After a horizon of {horizon} steps nothing counts, so final cannot be '{final}': leave it out."
        )
    if method in LINKED and (horizon is not None or final is not None or lookahead is not None):
        raise UserError(f"{method} finds the value for ever at once: leave out horizon, lookahead and final.")
    if data.terminated.any() and terminates is False:
        raise UserError("Episodes end in the data, so terminates cannot be False.")
    if discount == 1 and horizon is None and not (data.terminated.any() or terminates):
        raise UserError(
            "With discount 1 and no end in sight the value is infinite: give a horizon, a discount below 1, or data in "
            "which episodes end (a column 'terminated')."
        )
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        problem = Problem(data, policy, discount, prior, horizon, start, terminates, by_pair=method in LINKED)
        if method == "mean-mdp":
            samples, notes = problem.mean_values()[None], {}
        elif method == "joint" and final == "pooled":
            samples, notes = problem.joint(seed, mdps or draws, draws, lookahead, final)
        elif method in LINKED:
            samples, notes = evaluate_linked(problem, seed, method, mdps or 1000, draws, settings)
        elif method in ("joint", "monte-carlo"):
            # With psi_H a point for each MDP the joint belief is Monte Carlo, which keeps few MDPs in memory at a time;
            # with psi_H at their own values every step changes nothing, and the exact solution is all there is to do.
            samples, notes = problem.monte_carlo(seed, mdps or draws, final or "own", lookahead)
        else:
            samples, notes = problem.method1(seed, method, mdps or 10, draws, lookahead, final or "zero", settings)
    return ValuePosterior(
        samples=np.asarray(samples, dtype=np.float64),
        start=problem.start,
        method=method,
        discount=float(discount),
        actions=data.actions,
        transitions=len(data),
        sd_exists=problem.sd_exists(sampled=method in ("joint", "monte-carlo", *LINKED)),
        diagnostics=problem.diagnostics(method, notes),
        level=level,
    )


class Problem:
    """Data, policy and prior turned into arrays, and the ways to evaluate them."""

    def __init__(
        self, data: Transitions, policy: Any, discount: float, prior, horizon: int | None, start, terminates, by_pair
    ):
        check_memory(data.states, data.actions, tables=1)
        self.data, self.discount, self.horizon = data, discount, horizon
        self.prior = read_prior(prior, data)
        if by_pair:  # Methods 2 and 3 need the likelihood of rewards given their pair
            self.prior = dataclasses.replace(self.prior, outcome_strength=None)
        self.policy = read_policy(policy, data)
        self.start = _start(start, data)
        self.terminates = bool(data.terminated.any()) if terminates is None else terminates
        belief = belief_from(data, self.prior, self.terminates)
        used = jnp.asarray(self.policy)
        if ((self.policy == 0) | (self.policy == 1)).all():
            belief, used = tabular.restrict(belief, jnp.argmax(used, axis=-1)), jnp.ones((data.states, 1))
        self.belief, self.used = belief, used
        counts = np.asarray(belief.counts)
        self.support = 1 << int((counts > 0).sum(-1).max()).bit_length()

    def sampler(self) -> dict[str, Any]:
        """What the compiled functions below need to draw MDPs.

        A belief by outcome holds its reward prior already. Those numbers come from the data and must not be part of
        the static argument, or every log would be compiled anew.
        """
        prior = self.prior
        if prior.outcome_strength is not None:
            prior = tabular.Prior(prior.dirichlet, sparse=prior.sparse, row_weight=prior.row_weight)
        return {"belief": self.belief, "discount": self.discount, "prior": prior, "support": self.support}

    def _mean_mdp(self):
        if isinstance(self.belief, outcomes.OutcomeBelief):
            concentration = self.prior.concentration(self.belief.counts.shape[-1])
            return outcomes.mean(concentration, self.belief, self.discount)
        return tabular.mean(self.prior, self.belief, self.discount)

    def mean_values(self):
        """Values in the mean MDP."""
        if self.horizon is None:
            return bellman.evaluate_exact(self._mean_mdp(), self.used)
        return bellman.evaluate_finite(self._mean_mdp(), self.used, self.horizon)

    def monte_carlo(self, seed: int, mdps: int, final: str, lookahead: int | None):
        """Algorithm 1: exact values, those of the horizon, or (`final="zero"`) those of the induction's steps."""
        steps = self._steps(lookahead) if final == "zero" else self.horizon
        samples = _monte_carlo(jax.random.key(seed), self.used, mdps=mdps, horizon=steps, **self.sampler())
        return samples, {"mdps": mdps} | ({"lookahead": steps, "final": final} if final == "zero" else {})

    def joint(self, seed: int, mdps: int, draws: int, lookahead: int | None, final: str):
        """The joint belief's exact steps, then draws from its mixture."""
        steps = self._steps(lookahead)
        key = jax.random.key(seed)
        check_memory(self.data.states, self.used.shape[1], tables=mdps)
        belief = _joint(key, self.used, mdps=mdps, steps=steps, final=final, **self.sampler())
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
            **self.sampler(),
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

    def value_centre(self) -> float:
        """Middle of the possible values, from the same range of rewards as their span."""
        high = max(float(self.data.reward.max()), self.prior.reward_mean)
        low = min(float(self.data.reward.min()), self.prior.reward_mean)
        return (high + low) / 2 * (self._steps(None) if self.discount == 1 else 1 / (1 - self.discount))

    def value_span(self) -> float:
        """Span of possible values from the observed rewards, stretched to hold what the prior expects.

        Logged data do not tell the range of possible rewards; the prior's typical reward keeps the span positive.
        """
        prior = self.prior
        high = max(float(self.data.reward.max()), prior.reward_mean)
        low = min(float(self.data.reward.min()), prior.reward_mean)
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

    def unvisited(self) -> list[tuple[int, int]]:
        """Pairs that the policy may use and that were never tried."""
        pairs = np.argwhere((self.policy > 0) & (self.data.visits() == 0))
        return [(int(state), int(action)) for state, action in pairs]

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

    def diagnostics(self, method: str, notes: dict[str, Any]) -> dict[str, Any]:
        """What a reader of the numbers should know, and what the method noted."""
        unvisited = self.unvisited()
        warnings = [notes.pop("degenerate")] if "degenerate" in notes else []
        if unvisited:
            shown = ", ".join(f"({state}, {action})" for state, action in unvisited[:3])
            more = f" and {len(unvisited) - 3} more" if len(unvisited) > 3 else ""
            warnings.append(
                f"The policy may use {len(unvisited)} state-action pairs that the data never tried: {shown}{more}. "
                "What happens there is the prior's guess."
            )
        if method in ("joint", "monte-carlo", *LINKED) and not self.sd_exists(sampled=True).all():
            warnings.append("The posterior has no finite variance (a reward never observed is heavy-tailed): no sd.")
        if method in ("gaussian", "histogram"):
            warnings.append(
                "This value belief forgets which MDP a value came from, so its spread is far too small; use joint for "
                "intervals."
            )
        if method == "mean-mdp":
            warnings.append("The mean MDP gives one number and no uncertainty.")
        return {
            "prior": {
                "dirichlet": self.prior.concentration(self.data.states + self.terminates),
                "outcome_strength": self.prior.outcome_strength,
                "reward": [
                    self.prior.reward_mean,
                    self.prior.reward_strength,
                    self.prior.reward_shape,
                    self.prior.reward_rate,
                ],
            },
            "horizon": self.horizon,
            "unvisited_pairs": len(unvisited),
            "warnings": warnings,
        } | notes


@functools.partial(jax.jit, static_argnames=("mdps", "horizon", *SAMPLER))
def _monte_carlo(key, policy, *, mdps, horizon, belief, discount, prior, support):
    def draw(one):
        return sample_mdp(one, prior, belief, discount, support)

    return monte_carlo.values(key, mdps, draw, policy, horizon)


@functools.partial(jax.jit, static_argnames=("mdps", "steps", "final", *SAMPLER))
def _joint(key, policy, *, mdps, steps, final, belief, discount, prior, support):
    return induction.by_joint(draw_mdps(key, mdps, belief, discount, prior, support), policy, steps, final)


@functools.partial(jax.jit, static_argnames=("mdps", "steps", "final", "settings", *SAMPLER))
def _method1(key, policy, value_span, *, mdps, steps, final, settings, belief, discount, prior, support):
    sampled = draw_mdps(key, mdps, belief, discount, prior, support)
    step_key = jax.random.fold_in(key, STEP_STREAM)
    return induction.by_method1(step_key, settings, sampled, policy, steps, value_span, final)


def _start(start: int | np.ndarray | None, data: Transitions) -> Float[np.ndarray, "S"]:
    if start is None:
        return data.start_distribution()
    if isinstance(start, int | np.integer):
        if not 0 <= start < data.states:
            raise UserError(f"start must be one of the states 0 to {data.states - 1}, not {start}.")
        return np.eye(data.states)[start]
    start = np.asarray(start, dtype=np.float64)
    if start.shape != (data.states,) or (start < 0).any() or not np.isclose(start.sum(), 1):
        raise UserError(f"The start distribution must be {data.states} non-negative numbers with sum 1.")
    return start
