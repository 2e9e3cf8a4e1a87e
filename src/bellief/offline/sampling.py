"""From a log to a belief, and from a belief to sampled MDPs."""

import functools

import jax
import jax.numpy as jnp

from bellief.beliefs import outcomes, tabular
from bellief.logs.tally import LogStatistics
from bellief.offline.outcomes import by_outcome, tabular_belief

# Numbers of key streams apart from those of the MDPs, which count up from zero.
DRAW_STREAM, STEP_STREAM = 2**31 - 1, 2**31 - 2

# Static arguments of every compiled function that draws MDPs.
SAMPLER = ("prior", "support")


def belief_from(
    log: LogStatistics, prior: tabular.Prior, terminates: bool
) -> tabular.TabularBelief | outcomes.OutcomeBelief:
    """What the log says, in the form that the prior asks for."""
    if prior.outcome_strength is None:
        return tabular_belief(log, terminates)
    seen = outcomes.Statistics(*(jnp.asarray(field) for field in by_outcome(log, terminates)))
    return outcomes.posterior(tabular.reward_prior(prior, jnp.float64), prior.outcome_strength, seen)


def sample_mdp(key, prior: tabular.Prior, belief, discount, support):
    """One MDP from either kind of belief."""
    if isinstance(belief, outcomes.OutcomeBelief):
        concentration = prior.concentration(belief.counts.shape[-1])
        return outcomes.sample(key, concentration, belief, discount, support=support)
    return tabular.sample(key, prior, belief, discount, support=support)


def draw_mdps(key, count: int, belief, discount, prior, support):
    """MDPs number 0, 1, ... of the key's stream, the same ones for every method."""
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(count))
    return jax.vmap(lambda one: sample_mdp(one, prior, belief, discount, support))(keys)
