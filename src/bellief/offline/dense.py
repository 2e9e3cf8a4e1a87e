"""A policy for a log with the dense belief, and the ways to evaluate it."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bellief.beliefs import outcomes, tabular
from bellief.fast import enabled
from bellief.induction import evaluate as induction
from bellief.induction import method1, monte_carlo
from bellief.mdp import bellman
from bellief.offline.checks import check_memory
from bellief.offline.diagnostics import coverage, coverage_warnings
from bellief.offline.linked import LINKED
from bellief.offline.policies import read_policy
from bellief.offline.problem import Problem
from bellief.offline.sampling import DRAW_STREAM, SAMPLER, STEP_STREAM, belief_from, draw_mdps, sample_mdp
from bellief.values import joint

# Methods whose draws have the spread of the posterior.
SAMPLED = ("joint", "monte-carlo", *LINKED)

# An infinite horizon is cut where what lies beyond it weighs less than this.
TRUNCATION = 1e-3
LONGEST_LOOKAHEAD = 100_000


class Questions:
    """A policy for a log, and what can be said about the two before anything is sampled."""

    def __init__(self, ready: Problem, policy: Any):
        self.ready, self.data, self.prior = ready, ready.log, ready.prior
        self.discount, self.horizon, self.start = ready.discount, ready.horizon, ready.start
        self.terminates = ready.terminates
        self.policy = read_policy(policy, ready.log)

    def sd_exists(self, sampled: bool) -> np.ndarray:
        """Whether each state's value has a posterior variance.

        Under a Dirichlet belief every state may lead anywhere, so one pair without a variance reaches all states;
        within one step it reaches only its own.
        """
        states = self.data.states
        if not sampled:
            return np.ones(states, dtype=bool)
        known = self.ready.has_variance(self.policy > 0)
        return known if self.horizon == 1 else np.full(states, known.all())

    def diagnostics(self, method: str, notes: dict[str, Any]) -> dict[str, Any]:
        """What a reader of the numbers should know, and what the method noted."""
        covered = coverage(self.ready, self.policy)
        warnings = ([notes["degenerate"]] if "degenerate" in notes else []) + coverage_warnings(covered, self.ready)
        if method in SAMPLED and not self.sd_exists(sampled=True).all():
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
            "unvisited_pairs": len(covered.unvisited),
            "time_in_unvisited_pairs": covered.time_in_unvisited,
            "effective_visits": covered.effective_visits,
            "warnings": warnings,
            **({} if self.ready.dense else {"belief": "sparse"}),
        } | {name: note for name, note in notes.items() if name != "degenerate"}


class DenseProblem(Questions):
    """Data, policy and prior turned into dense arrays, and the ways to evaluate them."""

    def __init__(self, ready: Problem, policy: Any, by_pair: bool = False):
        # Methods 2 and 3 need the likelihood of rewards given their pair.
        super().__init__(ready._replace(prior=ready.prior.by_pair()) if by_pair else ready, policy)
        belief = belief_from(self.data, self.prior, self.terminates)
        used = jnp.asarray(self.policy)
        if ((self.policy == 0) | (self.policy == 1)).all():
            belief, used = tabular.restrict(belief, jnp.argmax(used, axis=-1)), jnp.ones((self.data.states, 1))
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
        high = max(self.data.reward_high, self.prior.reward_mean)
        low = min(self.data.reward_low, self.prior.reward_mean)
        return (high + low) / 2 * (self._steps(None) if self.discount == 1 else 1 / (1 - self.discount))

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
    with enabled():
        return induction.by_method1(step_key, settings, sampled, policy, steps, value_span, final)
