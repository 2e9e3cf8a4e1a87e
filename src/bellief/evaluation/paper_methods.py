"""The paper's own value beliefs for a log: Algorithm 2 (Gaussian, histogram), Methods 2 and 3, and psi_H pooled."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bellief.beliefs import tabular
from bellief.errors import UserError
from bellief.evaluation.dense_belief import DRAW_STREAM, SAMPLER, STEP_STREAM, belief_from, draw_mdps
from bellief.evaluation.methods23 import METHODS23, evaluate_methods23
from bellief.evaluation.offset import far_offset, value_of_offset, without_offset
from bellief.evaluation.problem import Problem
from bellief.evaluation.question import Question
from bellief.evaluation.question_checks import check_memory
from bellief.fast import enabled
from bellief.induction import evaluate as induction
from bellief.induction import method1
from bellief.processors import check_memory as check_free_memory
from bellief.values import joint


def evaluate(ready: Problem, policy, method, final, seed, mdps, draws, lookahead, settings):
    """The question, draws of the value function, and notes about the method."""
    if ready.support is not None:
        raise UserError(f"{method} does not take support: leave it out, or choose joint.")
    check_memory(ready.log.states, ready.log.actions, tables=1)
    if method in METHODS23:  # which need the likelihood of rewards given their pair
        ready = dataclasses.replace(ready, prior=ready.prior.by_pair())
    offset = far_offset(ready)
    if not offset:
        return _near_zero(ready, policy, method, final, seed, mdps, draws, lookahead, settings)
    question, near = Question(ready, policy), without_offset(ready, offset)
    _, samples, notes = _near_zero(near, question.policy, method, final, seed, mdps, draws, lookahead, settings)
    return question, np.asarray(samples) + value_of_offset(ready, offset), notes


def _near_zero(ready: Problem, policy, method, final, seed, mdps, draws, lookahead, settings):
    """The same for rewards that do not all lie far from zero."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        problem = DenseProblem(ready, policy)
        if method in METHODS23:
            return problem, *evaluate_methods23(problem, seed, method, mdps or 1000, draws, settings)
        if method in method1.BELIEFS:
            return problem, *problem.method1(seed, method, mdps or 10, draws, lookahead, final or "zero", settings)
        return problem, *problem.joint(seed, mdps or draws, draws, lookahead, final)


class DenseProblem(Question):
    """Data, policy and prior turned into dense arrays, and the ways to evaluate them."""

    def __init__(self, ready: Problem, policy: Any):
        super().__init__(ready, policy)
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

    def joint(self, seed: int, mdps: int, draws: int, lookahead: int | None, final: str):
        """The joint belief's exact steps, then draws from its mixture."""
        steps = self.steps(lookahead)
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
        # Every MDP has its samples, and each of these its distance from every utility; draws are held some four times.
        samples = mdps * settings.samples * (settings.utility_samples + 5)
        check_free_memory(
            8 * self.data.states * (samples + 4 * draws), f"{mdps} MDPs and {draws} draws", "ask for fewer"
        )
        steps = self.steps(lookahead)
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
        return (high + low) / 2 * (self.steps(None) if self.discount == 1 else 1 / (1 - self.discount))

    def value_span(self) -> float:
        """Span of possible values from the observed rewards, stretched to hold what the prior expects.

        Logged data do not tell the range of possible rewards; the prior's typical reward keeps the span positive.
        """
        prior = self.prior
        high = max(self.data.reward_high, prior.reward_mean)
        low = min(self.data.reward_low, prior.reward_mean)
        span = max(high - low, math.sqrt(prior.reward_rate / prior.reward_shape))
        steps = self.steps(None) if self.discount == 1 else 1 / (1 - self.discount)
        return span * (steps if self.horizon is None else min(steps, self.horizon))


@functools.partial(jax.jit, static_argnames=("mdps", "steps", "final", *SAMPLER))
def _joint(key, policy, *, mdps, steps, final, belief, discount, prior, support):
    return induction.by_joint(draw_mdps(key, mdps, belief, discount, prior, support), policy, steps, final)


@functools.partial(jax.jit, static_argnames=("mdps", "steps", "final", "settings", *SAMPLER))
def _method1(key, policy, value_span, *, mdps, steps, final, settings, belief, discount, prior, support):
    sampled = draw_mdps(key, mdps, belief, discount, prior, support)
    step_key = jax.random.fold_in(key, STEP_STREAM)
    with enabled():
        return induction.by_method1(step_key, settings, sampled, policy, steps, value_span, final)
