"""The paper's induction for few states as one kernel on an NVIDIA GPU.

A step of the induction on a small MDP is some forty operations on a few thousand numbers each. Called one by one they
take a GPU two microseconds each, however small they are; here a run stays on one multiprocessor for all H steps.
The same computation as `bbi_paper.induce`, in the same order but for sums, from
the same random numbers.

There is a plain number for each state, or pair of states; a vector over the MDPs, J, or the value samples, K; or a
table over both. Vectors have lengths that are powers of two, and what was added to them gets no weight.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int, Key

from bellief.agents import bbi_paper, rules
from bellief.fast import gaussian_induction
from bellief.induction import method1, weights
from bellief.mdp.tabular_mdp import TabularMDP

# Threads that share a run come in groups of 32.
WARPS = 4


class Outcome(NamedTuple):
    """The first step's actions and belief, and what the weights of all steps looked like."""

    actions: Int[Array, "S"]
    mean: Float[Array, "S"]
    sd: Float[Array, "S"]
    diagnostics: method1.Diagnostics


class _Sizes(NamedTuple):
    horizon: int
    mdps: int
    samples: int
    states: int
    actions: int


class _Draw(NamedTuple):
    """One attempt at V_k ~ psi_{i+1} (a vector over k for each state) and the weights."""

    number: Any
    sigma: Any
    values: list[Any]
    weight: Any
    effective_sample_size: Any
    unstable: Any


class _Carry(NamedTuple):
    """What one step hands to the next."""

    mean: list[Any]
    factor: dict[tuple[int, int], Any]
    sigma: Any
    actions: list[Any]
    diagnostics: method1.Diagnostics


def induce(
    key: Key[Array, ""],
    settings: method1.Settings,
    horizon: int,
    mdps: TabularMDP,
    final: Float[Array, "J S"],
    sigma: Float[Array, ""],
    score: bbi_paper.Score,
) -> tuple[Int[Array, "S"], bbi_paper.Info]:
    """`bbi_paper.induce` with its `mean_q`."""
    del score
    start = method1.start(settings, final, sigma)
    keys = gaussian_induction.step_keys(key, horizon)
    noise = jax.vmap(lambda attempt: gaussian_induction.noise(keys[:, 0], settings, start, attempt))(jnp.arange(2))
    ties = rules.tie_breakers(keys[:, 2], mdps.reward.shape[1:], final.dtype)
    found = run(settings, mdps, start, noise, ties)
    return found.actions, bbi_paper.Info(*found.diagnostics, found.mean, found.sd)


def run(
    settings: method1.Settings,
    mdps: TabularMDP,
    start: method1.Progress,
    noise: Float[Array, "2 H K*S"],
    tie_breakers: Float[Array, "H S*A"],
    interpret: bool = False,
) -> Outcome:
    """The whole induction; `noise` holds the random numbers of first and second draws."""
    sizes = _Sizes(noise.shape[1], mdps.reward.shape[0], settings.samples, *mdps.reward.shape[1:])
    states, dtype = sizes.states, mdps.reward.dtype
    all_mdps, all_samples, all_pairs = (
        max(2, pallas.next_power_of_2(size)) for size in (sizes.mdps, sizes.samples, states * sizes.actions)
    )

    def pad(array, *ends):
        whole = (*array.shape[: array.ndim - len(ends)], *ends)
        return jnp.pad(array, [(0, end - size) for size, end in zip(array.shape, whole, strict=True)])

    row, number, count = (
        jax.ShapeDtypeStruct(shape, kind) for shape, kind in (((states,), dtype), ((), dtype), ((), jnp.int32))
    )
    *found, _, _ = pallas.pallas_call(
        functools.partial(_kernel, settings, sizes, interpret),
        out_shape=(
            jax.ShapeDtypeStruct((states,), jnp.int32),
            row,
            row,
            number,
            count,
            count,
            jax.ShapeDtypeStruct((states, all_samples, all_mdps), dtype),
            jax.ShapeDtypeStruct((all_pairs,), dtype),
        ),
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=1),
    )(
        pad(mdps.transition.transpose(3, 2, 1, 0).reshape(states, -1, sizes.mdps), all_pairs, all_mdps),
        pad(mdps.reward.transpose(2, 1, 0).reshape(-1, sizes.mdps), all_pairs, all_mdps),
        start.belief.mean,
        start.belief.factor,
        start.sigma,
        pad(noise.reshape(2, sizes.horizon, sizes.samples, states).swapaxes(2, 3), all_samples),
        tie_breakers.reshape(sizes.horizon, states, sizes.actions),
        mdps.discount.reshape(-1)[0],
    )
    actions, mean, sd, *diagnostics = found
    return Outcome(actions, mean, sd, method1.Diagnostics(*diagnostics))


def _kernel(settings: method1.Settings, sizes: _Sizes, interpret: bool, *references):
    """`memory` holds the samples V_jk of the last step, whose first L are the utilities of the next, and `scores` those
    of all pairs, action by action.
    """
    transition, reward, mean, factor, sigma, noise, tie_breakers, discount, *outputs, memory, scores = references
    each = range(sizes.states)
    none = jnp.array(0, jnp.int32)
    real_mdp = (jnp.arange(memory.shape[2]) < sizes.mdps)[None]
    real_sample = jnp.arange(memory.shape[1]) < sizes.samples

    def exchange(place, *parts):
        # Threads see one another's numbers only in memory, after all have read the last ones and written these.
        wait = (lambda: None) if interpret else triton.debug_barrier
        wait()
        for number, part in enumerate(parts):
            place[number if len(parts) > 1 else ...] = part
        wait()

    def draw(step, carry: _Carry) -> _Draw:
        def attempt(last: _Draw) -> _Draw:
            normals = [noise[jnp.minimum(last.number, 1), step, row] for row in each]
            sigma = jnp.where(last.number >= 2, 2 * last.sigma, last.sigma)
            values = [
                carry.mean[own] + sum(carry.factor[row, own] * normals[row] for row in range(own + 1)) for own in each
            ]
            likelihood = _log_likelihood(settings.utility_samples, values, memory, sigma)
            likelihood = jnp.where(real_mdp, jnp.where(step > 0, likelihood, 0), -jnp.inf)
            top = jnp.max(likelihood, axis=1)
            weight = jnp.exp(likelihood - top[:, None])
            weight = weight / jnp.sum(weight, axis=1)[:, None]
            size = jnp.where(real_sample, 1 / jnp.sum(weight * weight, axis=1), 0)
            failed = real_sample & ((top < weights.UNDERFLOW) | ~(size < jnp.inf))
            unstable = jnp.max(failed.astype(jnp.int32))
            return _Draw(last.number + 1, sigma, values, weight, jnp.sum(size) / sizes.samples, unstable)

        def unstable(last: _Draw):
            return (last.unstable > 0) & (last.number <= settings.max_doublings + 1)

        no_values = [jnp.zeros(memory.shape[1], memory.dtype) for _ in each]
        no_weight = jnp.zeros(memory.shape[1:], memory.dtype)
        none_yet = _Draw(none, carry.sigma, no_values, no_weight, jnp.zeros_like(carry.sigma), none + 1)
        return jax.lax.while_loop(unstable, attempt, none_yet)

    def choose(step, own):
        best, chosen, largest = jnp.array(-jnp.inf), none, jnp.array(-1.0)
        for action in range(sizes.actions):
            score, tie = scores[action * sizes.states + own], tie_breakers[step, own, action]
            better = (score > best) | ((score == best) & (tie > largest))
            best, chosen, largest = (
                jnp.where(better, new, old) for new, old in ((score, best), (action, chosen), (tie, largest))
            )
        return chosen

    def back_up(own, action, values):
        pair = action * sizes.states + own
        later = sum(transition[after, pair][None] * values[after][:, None] for after in each)
        return reward[pair][None] + discount[...] * later

    def one_step(step, carry: _Carry) -> _Carry:
        drawn = draw(step, carry)
        mass = jnp.where(real_mdp & real_sample[:, None], drawn.weight / sizes.samples, 0)
        # The sum over k comes first, as in `bbi_paper.mean_q`, and all pairs of states and actions are scored at once.
        later = sum(transition[after] * jnp.sum(mass * drawn.values[after][:, None], axis=0)[None] for after in each)
        exchange(scores, jnp.sum(jnp.sum(mass, axis=0)[None] * reward[...] + discount[...] * later, axis=1))
        actions = [choose(step, own) for own in each]
        samples = [back_up(own, actions[own], drawn.values) for own in each]
        exchange(memory, *samples)
        seen = carry.diagnostics
        diagnostics = method1.Diagnostics(
            seen.effective_sample_size + drawn.effective_sample_size / sizes.horizon,
            seen.resamples + jnp.minimum(drawn.number - 1, 1),
            seen.doublings + jnp.maximum(drawn.number - 2, 0),
        )
        after, factor_after = _fit(samples, mass)
        return _Carry(after, factor_after, drawn.sigma, actions, diagnostics)

    first = _Carry(
        [mean[own] for own in each],
        {(row, own): factor[row, own] for row, own in _pairs(sizes.states)},
        sigma[...],
        [none for _ in each],
        method1.Diagnostics(jnp.zeros_like(sigma[...]), none, none),
    )
    last = jax.lax.fori_loop(0, sizes.horizon, one_step, first)
    for own in each:
        outputs[0][own] = last.actions[own]
        outputs[1][own] = last.mean[own]
        outputs[2][own] = jnp.sqrt(sum(last.factor[row, own] ** 2 for row in range(own + 1)))
    for output, found in zip(outputs[3:], last.diagnostics, strict=True):
        output[...] = found


def _log_likelihood(count: int, values, memory, sigma):
    """The mixture of `weights.log_likelihood`, over the states and the first `count` samples in memory."""
    scale = -1 / (2 * sigma * sigma)

    def exponents(sample):
        for own, value in enumerate(values):
            apart = value[:, None] - memory[own, sample][None]
            yield scale * (apart * apart)

    def largest(sample, so_far):
        return functools.reduce(jnp.maximum, exponents(sample), so_far)

    def total(sample, so_far):
        return so_far + sum(jnp.exp(exponent - peak) for exponent in exponents(sample))

    shape, dtype = memory.shape[1:], memory.dtype
    peak = jax.lax.fori_loop(0, count, largest, jnp.full(shape, -jnp.inf, dtype))
    return peak + jnp.log(jax.lax.fori_loop(0, count, total, jnp.zeros(shape, dtype)))


def _pairs(states: int, first: int = 0) -> list[tuple[int, int]]:
    """The entries of an upper triangular matrix, from a row on."""
    return [(row, own) for row in range(first, states) for own in range(row, states)]


def _fit(samples, mass):
    """Mean and upper triangular root of the covariance (`gaussian.fit`)."""
    states = len(samples)
    # In one row, so that a sum over all is one sum, not two.
    mass, samples = mass.reshape(-1), [table.reshape(-1) for table in samples]
    mean = [jnp.sum(mass * table) for table in samples]
    root = jnp.sqrt(mass)
    centred = [root * (table - centre) for table, centre in zip(samples, mean, strict=True)]
    rest = {(row, own): jnp.sum(centred[row] * centred[own]) for row, own in _pairs(states)}
    floor = [8 * states * jnp.finfo(mass.dtype).eps * rest[own, own] for own in range(states)]
    factor: dict[tuple[int, int], Any] = {}
    for pivot in range(states):
        has_variance = rest[pivot, pivot] > floor[pivot]
        scale = jnp.where(has_variance, jax.lax.rsqrt(jnp.where(has_variance, rest[pivot, pivot], 1)), 0)
        factor |= {(pivot, own): scale * rest[pivot, own] for own in range(pivot, states)}
        for row, own in _pairs(states, pivot + 1):
            rest[row, own] = rest[row, own] - factor[pivot, row] * factor[pivot, own]
    return mean, factor
