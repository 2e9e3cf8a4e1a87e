"""The belief about a whole tabular MDP: Dirichlet rows and NormalGamma rewards; a sample of it is a `TabularMDP`.

>>> import jax, numpy as np
>>> from bellief.beliefs import tabular
>>> from bellief.types import Spaces, Transition
>>> prior = tabular.Prior(dirichlet=1.0)
>>> tabular.named_prior("sparse").concentration(outcomes=4)
0.25
>>> seen = Transition(*map(np.array, ([0, 0, 1], [0, 0, 0], np.float32([1, 3, 0]), [1, 1, 0], [False] * 3)))
>>> belief = tabular.update_batch(tabular.init(states=2, actions=1), seen)
>>> type(belief).__name__, belief.counts[0, 0].tolist()
('TabularBelief', [0, 2])
>>> belief = tabular.update(belief, Transition(*(part[0] for part in seen)))
>>> mean = tabular.mean(prior, belief, discount=0.9)
>>> print(mean.transition[0, 0], mean.reward[:, 0])
[0.2 0.8] [1.25 0.  ]
>>> drawn = tabular.sample(jax.random.key(0), prior, belief, discount=0.9)
>>> drawn.transition.sum(-1).round(3).tolist()
[[1.0], [1.0]]
>>> ahead = tabular.look_ahead(prior, belief, drawn, visits=0)  # no more visits, no news: the mean
>>> np.allclose(ahead.transition, mean.transition)
True
>>> tabular.log_density(prior, belief, drawn).shape, tabular.log_likelihood(belief, drawn).shape
((), (2, 1))
>>> tabular.reward_prior(prior, np.float32).mean.item()
0.0
>>> tabular.reward_span(prior, belief, Spaces(2, 1, False, 0.0, 3.0)).item()
3.0
>>> tabular.restrict(belief, np.array([0, 0])).counts.shape
(2, 1, 2)

Where episodes can end, the end is one more outcome:

>>> tabular.outcome_of(Transition(0, 0, 1.0, 1, True), states=2, outcomes=3).item()
2
>>> rows = np.float32([[[0.5, 0.25, 0.25]], [[0.5, 0.5, 0]]])
>>> tabular.as_mdp(rows, np.zeros((2, 1)), None, None, 0.9).termination[:, 0].tolist()
[0.25, 0.0]
"""

import math
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.beliefs import dirichlet, normal_gamma
from bellief.errors import UserError
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.priors import PAPER_PRIOR as PAPER_PRIOR
from bellief.priors import PRIORS as PRIORS
from bellief.priors import SPARSE_PRIOR as SPARSE_PRIOR
from bellief.priors import Prior as Prior
from bellief.priors import named_prior as named_prior
from bellief.types import Spaces, Transition


def reward_prior(prior: Prior, dtype: jnp.dtype) -> normal_gamma.Parameters:
    """The NormalGamma prior of one pair."""
    values = (prior.reward_mean, prior.reward_strength, prior.reward_shape, prior.reward_rate)
    return normal_gamma.Parameters(*(jnp.asarray(value, dtype) for value in values))


# A belief whose every field is a table over pairs.
AnyBelief = TypeVar("AnyBelief")


class TabularBelief(NamedTuple):
    """Sufficient statistics of all observations. `O` is `S`, or `S + 1` where episodes can end (its last outcome)."""

    counts: Int[Array, "S A O"]
    rewards: normal_gamma.Statistics


def init(states: int, actions: int, terminates: bool = False, dtype: Any = float) -> TabularBelief:
    """The belief before any data."""
    return TabularBelief(
        dirichlet.init((states, actions), states + int(terminates)), normal_gamma.init((states, actions), dtype)
    )


def outcome_of(transition: Transition, states: int, outcomes: int) -> Int[Array, "*batch"]:
    """Number of the outcome that a transition is: its next state, or the last one of S + 1 where an episode ended."""
    if outcomes == states:
        return transition.next_state
    return jnp.where(transition.terminated, states, transition.next_state)


def _sizes(belief: TabularBelief) -> tuple[int, int]:
    return belief.counts.shape[0], belief.counts.shape[-1]


def update(belief: TabularBelief, transition: Transition) -> TabularBelief:
    """Account for one transition."""
    row = (transition.state, transition.action)
    return TabularBelief(
        dirichlet.update(belief.counts, row, outcome_of(transition, *_sizes(belief))),
        normal_gamma.update(belief.rewards, row, transition.reward),
    )


def update_batch(belief: TabularBelief, transitions: Transition) -> TabularBelief:
    """Account for many transitions at once; the same result as one at a time, up to rounding of the rewards."""
    row = (transitions.state, transitions.action)
    return TabularBelief(
        dirichlet.update(belief.counts, row, outcome_of(transitions, *_sizes(belief))),
        normal_gamma.update_batch(belief.rewards, row, transitions.reward),
    )


def as_mdp(rows, reward, reward_sd, start, discount) -> TabularMDP:
    """An MDP from rows of S outcomes, or of S + 1 where the last one is the end of the episode."""
    states = rows.shape[0]
    ends = rows[..., states] if rows.shape[-1] > states else jnp.zeros_like(reward)
    if start is None:
        start = jnp.full(states, 1 / states, rows.dtype)
    return TabularMDP(rows[..., :states], reward, ends, start, jnp.asarray(discount, rows.dtype), reward_sd)


def sample(
    key: Key[Array, ""],
    prior: Prior,
    belief: TabularBelief,
    discount: Float[Array, ""] | float,
    start: Float[Array, "S"] | None = None,
    support: int | None = None,
) -> TabularMDP:
    """One MDP from the posterior. Its reward is a draw of the *mean* reward, as the paper's rho_mu.

    `support` is passed on to `dirichlet.sample`.
    """
    dtype = belief.rewards.mean.dtype
    row_key, reward_key = jax.random.split(key)
    concentration = prior.concentration(belief.counts.shape[-1])
    rows = dirichlet.sample(row_key, concentration, belief.counts, dtype, support)
    parameters = normal_gamma.posterior(reward_prior(prior, dtype), belief.rewards)
    reward, reward_sd = normal_gamma.sample(reward_key, parameters)
    return as_mdp(rows, reward, reward_sd, start, discount)


def mean(
    prior: Prior,
    belief: TabularBelief,
    discount: Float[Array, ""] | float,
    start: Float[Array, "S"] | None = None,
) -> TabularMDP:
    """The mean MDP: posterior mean of every row and of every reward."""
    dtype = belief.rewards.mean.dtype
    rows = dirichlet.mean(prior.concentration(belief.counts.shape[-1]), belief.counts, dtype)
    reward = normal_gamma.mean(normal_gamma.posterior(reward_prior(prior, dtype), belief.rewards))
    return as_mdp(rows, reward, None, start, discount)


def look_ahead(prior: Prior, belief: TabularBelief, mdp: TabularMDP, visits: Float[Array, ""] | float) -> TabularMDP:
    """Pull a posterior draw towards the mean MDP, to what the belief's *mean* may become after some more visits.

    After m further visits of a pair with n observations and prior weight n0, its posterior mean is expected to be the
    present mean, with m / (n0 + n + m) of the present variance, for Dirichlet rows and NormalGamma rewards alike.
    Moving a draw to mean + sqrt(m / (n0 + n + m)) * (draw - mean) gives exactly that mean and covariance, and rows
    stay distributions.
    """
    centre = mean(prior, belief, mdp.discount, mdp.start)
    outcomes = belief.counts.shape[-1]
    observed = belief.rewards.count.astype(mdp.reward.dtype)
    row_share = jnp.sqrt(visits / (prior.concentration(outcomes) * outcomes + observed + visits))
    reward_share = jnp.sqrt(visits / (prior.reward_strength + observed + visits))
    return mdp._replace(
        transition=centre.transition + row_share[..., None] * (mdp.transition - centre.transition),
        reward=centre.reward + reward_share * (mdp.reward - centre.reward),
        termination=centre.termination + row_share * (mdp.termination - centre.termination),
    )


def log_density(prior: Prior, belief: TabularBelief, mdp: TabularMDP) -> Float[Array, ""]:
    """Log posterior density of an MDP that carries its rewards' spread (as every sampled one does)."""
    if mdp.reward_sd is None:
        raise UserError("The density of an MDP needs its reward_sd, which this one does not have.")
    states, _, outcomes = belief.counts.shape
    rows = mdp.transition
    if outcomes > states:
        rows = jnp.concatenate([rows, mdp.termination[..., None]], axis=-1)
    parameters = normal_gamma.posterior(reward_prior(prior, mdp.reward.dtype), belief.rewards)
    row_terms = dirichlet.log_density(prior.concentration(outcomes), belief.counts, rows)
    return jnp.sum(row_terms + normal_gamma.log_density(parameters, mdp.reward, 1 / mdp.reward_sd**2))


def log_likelihood(belief: TabularBelief, mdp: TabularMDP) -> Float[Array, "S A"]:
    """Log likelihood of everything observed of each pair, given an MDP that carries its rewards' spread.

    P(D | mdp) of the paper's Method 2, up to factors that do not depend on the MDP (the policy that chose the actions).
    """
    if mdp.reward_sd is None:
        raise UserError("The likelihood under an MDP needs its reward_sd, which this one does not have.")
    states, _, outcomes = belief.counts.shape
    rows = mdp.transition
    if outcomes > states:
        rows = jnp.concatenate([rows, mdp.termination[..., None]], axis=-1)
    seen = belief.counts > 0
    row_terms = jnp.sum(jnp.where(seen, belief.counts * jnp.log(jnp.where(seen, rows, 1)), 0), axis=-1)
    count = belief.rewards.count.astype(mdp.reward.dtype)
    squares = belief.rewards.squares + count * (belief.rewards.mean - mdp.reward) ** 2
    return row_terms - count * jnp.log(mdp.reward_sd) - squares / (2 * mdp.reward_sd**2)


def reward_span(prior: Prior, belief: TabularBelief, spaces: Spaces) -> Float[Array, ""]:
    """Largest minus smallest possible reward, or an estimate of it where the environment does not say.

    The estimate spans the mean rewards of the pairs seen so far and the prior mean, and is at least the prior's typical
    deviation of a reward, so that it is never zero.
    """
    dtype = belief.rewards.mean.dtype
    typical = math.sqrt(prior.reward_rate / prior.reward_shape)
    if spaces.reward_low is not None and spaces.reward_high is not None:
        # Where all rewards are equal nothing has a span, and a width derived from it would be zero.
        return jnp.asarray(spaces.reward_high - spaces.reward_low or typical, dtype)
    seen = jnp.where(belief.rewards.count > 0, belief.rewards.mean, prior.reward_mean)
    span = jnp.maximum(jnp.max(seen), prior.reward_mean) - jnp.minimum(jnp.min(seen), prior.reward_mean)
    return jnp.maximum(span, typical).astype(dtype)


def restrict(belief: AnyBelief, actions: Int[Array, "S"]) -> AnyBelief:
    """The belief about the pairs that a deterministic policy uses, as a belief with one action.

    Drawing rows costs far more than solving for values; a policy's value needs only its own rows.
    """
    rows = jnp.arange(actions.shape[0])

    def pick(table):
        return table[rows, actions][:, None]

    return jax.tree.map(pick, belief)
