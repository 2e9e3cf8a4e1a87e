"""Methods 2 and 3 with V_i = V_{i+1} = V: the infinite-horizon value in one step of inference, without induction.

    P(V | D) is proportional to P(V) P(D | V, V).

With P(V_i | V_{i+1}) taken as the model's own prior push-forward, the denominator of P(D | V_i, V_{i+1}) cancels and
an induction step of either method is mean-field plus noise sigma. Here V is on both sides of the link, so knowing V
is informative about the MDP, and P(V) can be chosen:

- `gaussian`: N(centre, (span / 2)^2) in every state, a prior about values that no prior about MDPs implies;
- `own`: E_prior[l], what the model implies. It cancels the denominator and leaves P(V | D) proportional to
  E_posterior[l], a mixture over MDPs with mass 1 / det(I - discount P): for a small sigma Monte Carlo weighted by that.

>>> import jax, numpy as np
>>> from bellief.envs import make
>>> from bellief.induction import stationary
>>> worlds = [make("nchain", slip=slip).mdp(discount=0.9) for slip in (0.1, 0.2, 0.3)]
>>> mdps = jax.tree.map(lambda *leaves: np.float32(leaves), *worlds)
>>> rows = stationary.rows_of(mdps, np.full((5, 2), 0.5, np.float32))
>>> first = 20 + jax.random.normal(jax.random.key(1), (8, 5))
>>> few = stationary.Settings(steps=2)
>>> found = stationary.infer(jax.random.key(0), few, rows, rows, first, 0.9, centre=20.0, span=40.0)
>>> type(found).__name__, found.values.shape, bool(1 <= found.posterior_size <= 3)
('Result', (8, 5), True)
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.errors import require, require_choice
from bellief.induction import bellman_likelihood as shared
from bellief.induction import method2, method3
from bellief.induction.bellman_likelihood import Rows
from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP

VALUE_PRIORS = ("own", "gaussian")

# Memory for the links of a batch of chains with all draws.
BATCH_BYTES = 128_000_000


@dataclasses.dataclass(frozen=True)
class Settings:
    """Static choices.

    `bandwidth` is sigma divided by the posterior spread of a state's backed-up value, so that a share of the draws
    links in any units; `steps` is the length of every chain, `prior_mdps` the number of prior draws.

    Deviation: the paper's sigma is a fraction of the span of values. The residual of a Bellman equation lives on the
    scale of one step's uncertainty, and errors of size sigma in it are errors of sigma / (1 - discount) in V.
    """

    value_prior: str = "own"
    bandwidth: float = 0.2
    steps: int = 200
    prior_mdps: int = 4000

    def __post_init__(self):
        require_choice(self.value_prior, VALUE_PRIORS, "There is no value prior")
        for name in ("bandwidth", "steps", "prior_mdps"):
            require(getattr(self, name) > 0, f"{name} must be positive, not {getattr(self, name)}.")


class Result(NamedTuple):
    """Draws of V, and how far to trust them: the smaller the effective sizes, the less the estimate means."""

    values: Float[Array, "N S"]
    acceptance: Float[Array, ""]
    posterior_size: Float[Array, ""]
    prior_size: Float[Array, ""]
    likelihood_size: Float[Array, ""]


def rows_of(mdps: TabularMDP, policy: Float[Array, "S A"]) -> Rows:
    """Draws of MDPs as draws of the chain's rows."""
    transition, reward = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
    return Rows(transition, reward, jnp.zeros_like(reward))


def infer(
    key: Key[Array, ""],
    settings: Settings,
    posterior_draws: Rows,
    prior_draws: Rows,
    first: Float[Array, "N S"],
    discount: Float[Array, ""] | float,
    centre: Float[Array, ""],
    span: Float[Array, ""],
    log_likelihood: Float[Array, "J S"] | None = None,
) -> Result:
    """Draws of P(V | D), one from each chain begun at a row of `first` (Monte Carlo values).

    Method 3 by default; Method 2 where the log likelihood of the data under each prior draw of each row is given, in
    which case `posterior_draws` only set the scale of sigma.
    """
    sigma = settings.bandwidth * shared.residual_spread(jnp.mean(first, axis=0), posterior_draws, discount)
    # A row without any spread (a reward and a next state known for certain) still needs a width.
    sigma = jnp.maximum(sigma, 1e-9 * span)
    likelihood = method3 if log_likelihood is None else method2
    numerator = posterior_draws if log_likelihood is None else method2.weigh(prior_draws, log_likelihood)

    def log_target(values):
        if settings.value_prior == "own":
            return shared.log_mean(shared.log_links(values, values, numerator, discount, sigma))
        prior = -jnp.sum(((values - centre) / (span / 2)) ** 2) / 2
        return prior + likelihood.log_likelihood(values, values, numerator, prior_draws, discount, sigma)

    chains = shared.sample_values(key, _batched(log_target, numerator, prior_draws), first, settings.steps)

    def sizes(rows):
        links = jax.vmap(lambda values: shared.log_links(values, values, rows, discount, sigma))(chains.values[:100])
        return jnp.median(jnp.min(jax.vmap(shared.effective_sizes)(links), axis=-1))

    return Result(
        values=chains.values,
        acceptance=chains.acceptance,
        posterior_size=sizes(numerator),
        prior_size=sizes(prior_draws),
        likelihood_size=jnp.min(method2.likelihood_sizes(numerator)),
    )


def _batched(log_target, *rows: Rows):
    """The target for many value functions at once, few enough at a time to fit into memory."""
    largest = max(part.reward.size for part in rows)
    return lambda values: jax.lax.map(log_target, values, batch_size=max(1, BATCH_BYTES // (8 * largest)))
