"""The belief about a log as JAX arrays, for the paper's own methods; everything else draws with `SampledMDPs`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from bellief.beliefs import normal_gamma, outcomes, tabular
from bellief.evaluation.ends import merged_ends
from bellief.logs.tally import Tally
from bellief.priors import Prior

# Numbers of key streams apart from those of the MDPs, which count up from zero.
DRAW_STREAM, STEP_STREAM = 2**31 - 1, 2**31 - 2

# Static arguments of every compiled function that draws MDPs.
SAMPLER = ("prior", "support")


def belief_from(log: Tally, prior: Prior, terminates: bool) -> tabular.TabularBelief | outcomes.OutcomeBelief:
    """What the log says, in the form that the prior asks for."""
    log = merged_ends(log)
    shape = (log.states, log.actions, log.states + terminates)
    counts = np.zeros(shape, np.int32)
    where = (log.cell_state, log.cell_action, log.cell_outcome)
    counts[where] = log.cell_count
    if prior.outcome_strength is None:
        moments = np.zeros((2, log.states, log.actions))
        moments[:, log.pair_state, log.pair_action] = log.pair_mean, log.pair_squares
        count = jnp.asarray(log.visits(), jnp.int32)
        statistics = normal_gamma.Statistics(count, *(jnp.asarray(part) for part in moments))
        return tabular.TabularBelief(jnp.asarray(counts), statistics)
    mean, within = np.zeros(shape), np.zeros(shape[:2])
    mean[where] = log.cell_mean
    np.add.at(within, where[:2], log.cell_squares)
    seen = outcomes.Statistics(*(jnp.asarray(field) for field in (counts, mean, within)))
    return outcomes.posterior(tabular.reward_prior(prior, jnp.float64), prior.outcome_strength, seen)


def sample_mdp(key, prior: Prior, belief, discount, support):
    """One MDP from either kind of belief."""
    if isinstance(belief, outcomes.OutcomeBelief):
        concentration = prior.concentration(belief.counts.shape[-1])
        return outcomes.sample(key, concentration, belief, discount, support=support)
    return tabular.sample(key, prior, belief, discount, support=support)


def draw_mdps(key, count: int, belief, discount, prior, support):
    """MDPs number 0, 1, ... of the key's stream, the same ones for every method."""
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(count))
    return jax.vmap(lambda one: sample_mdp(one, prior, belief, discount, support))(keys)
