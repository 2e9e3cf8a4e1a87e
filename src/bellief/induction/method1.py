"""One induction step by the paper's Method 1: weigh the sampled MDPs by each value sample, back up, refit.

A step is in two halves, because policy optimisation chooses an action between them: `draw` samples V_{i+1} and weighs
the MDPs; `refit` fits psi_i to the samples once they are backed up.

>>> import jax, numpy as np
>>> from bellief.envs import make
>>> from bellief.induction import method1
>>> from bellief.mdp import bellman, utilities
>>> worlds = [make("nchain", slip=slip).mdp(discount=0.9) for slip in (0.1, 0.3)]
>>> mdps = jax.tree.map(lambda *leaves: np.float32(leaves), *worlds)
>>> policy, key = np.full((5, 2), 0.5, np.float32), jax.random.key(0)
>>> settings = method1.Settings(samples=4, utility_samples=2)
>>> progress = method1.start(settings, final=np.zeros((2, 5), np.float32), sigma=jax.numpy.array(1.0))
>>> values, weight, progress, seen = method1.draw(key, settings, progress)
>>> values.shape, weight.sum(0).tolist(), type(seen).__name__
((4, 5), [1.0, 1.0, 1.0, 1.0], 'Diagnostics')
>>> chain = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
>>> samples = jax.vmap(utilities.expected, in_axes=(0, 0, None, None))(*chain, 0.9, values)
>>> progress = method1.refit(key, settings, progress, mdps, policy, samples, weight)
>>> type(progress).__name__, progress.belief.mean.shape
('Progress', (5,))
"""

import dataclasses
import math
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.errors import UserError
from bellief.induction import weights
from bellief.mdp import bellman, utilities
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.registry import METHOD1_VALUES, value_belief

UTILITIES = ("sampled", "expected", "values")
BELIEFS: dict[str, ModuleType] = {name: value_belief(name) for name in METHOD1_VALUES}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Static choices of Method 1; the defaults are the paper's.

    `samples` is K, `utility_samples` is L; `utilities` names the paper's rollout formula 1, 2 or 3; `sigma_fraction`
    is sigma divided by the span of possible values; `max_doublings` bounds how often it is doubled in one step.
    """

    values: str = "gaussian"
    samples: int = 50
    utility_samples: int = 10
    utilities: str = "values"
    likelihood: str = "mixture"
    sigma_fraction: float = 0.01
    max_doublings: int = 60

    def __post_init__(self):
        known = {"values": tuple(BELIEFS), "utilities": UTILITIES, "likelihood": weights.LIKELIHOODS}
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise UserError(f"'{getattr(self, name)}' is no choice of {name}; choose one of {', '.join(choices)}.")
        if not 0 < self.sigma_fraction < math.inf:
            raise UserError(f"sigma_fraction must be positive and finite, not {self.sigma_fraction}.")
        if not 1 <= self.utility_samples <= self.samples:
            raise UserError(f"utility_samples must lie in 1 to samples ({self.samples}), not {self.utility_samples}.")


class Progress(NamedTuple):
    """What one step passes to the next: psi_{i+1}, utilities for V_{i+1}, and sigma, which only grows within a plan.

    `informed` is false before the first backup: psi_{H+1} does not exist, so there are no utilities for V_H.
    """

    belief: Any
    utilities: Float[Array, "J L S"]
    informed: Bool[Array, ""]
    sigma: Float[Array, ""]


class Diagnostics(NamedTuple):
    """Diagnostics of the weights of one step."""

    effective_sample_size: Float[Array, "*K"]
    resamples: Int[Array, "*K"]
    doublings: Int[Array, "*K"]


def start(settings: Settings, final: Float[Array, "J S"], sigma: Float[Array, ""]) -> Progress:
    """psi_H from the value functions that the sampled MDPs end on; equal ones make a point mass."""
    mdps, states = final.shape
    repeated = jnp.broadcast_to(final[:, None], (mdps, settings.samples, states))
    even = jnp.full((mdps, settings.samples), 1 / mdps, final.dtype)
    belief = BELIEFS[settings.values].fit(repeated, even)
    return Progress(belief, repeated[:, : settings.utility_samples], jnp.array(False), sigma)


def draw(
    key: Key[Array, ""], settings: Settings, progress: Progress
) -> tuple[Float[Array, "K S"], Float[Array, "J K"], Progress, Diagnostics]:
    """V_k ~ psi_{i+1} and the weights w_jk.

    Unstable weights are repaired as the paper says: draw again once, then double sigma until they hold.
    """

    def attempt(number, sigma):
        """Attempt 0 is the first draw, 1 the second; a doubling keeps the second draw's values."""
        sigma = jnp.where(number >= 2, 2 * sigma, sigma)
        draw_key = jax.random.fold_in(key, jnp.minimum(number, 1))
        values = BELIEFS[settings.values].sample(draw_key, progress.belief, settings.samples)
        log_weight = weights.log_likelihood(values, progress.utilities, sigma, settings.likelihood)
        log_weight = jnp.where(progress.informed, log_weight, 0)
        return number + 1, sigma, values, weights.normalise(log_weight), weights.is_unstable(log_weight)

    def is_unstable(carry):
        count, _, _, _, unstable = carry
        return unstable & (count <= settings.max_doublings + 1)

    first = attempt(jnp.array(0, jnp.int32), progress.sigma)
    count, sigma, values, weight, _ = jax.lax.while_loop(is_unstable, lambda carry: attempt(carry[0], carry[1]), first)
    size = jnp.mean(weights.effective_sample_size(weight))
    diagnostics = Diagnostics(size, jnp.minimum(count - 1, 1), jnp.maximum(count - 2, 0))
    return values, weight, progress._replace(sigma=sigma), diagnostics


def refit(
    key: Key[Array, ""],
    settings: Settings,
    progress: Progress,
    mdps: TabularMDP,
    policy: Float[Array, "S A"],
    samples: Float[Array, "J K S"],
    weight: Float[Array, "J K"],
) -> Progress:
    """psi_i, fitted with the weights to the samples V_jk = B_j V_k, and the utilities for V_i.

    The third utility formula applied to L draws of psi_{i+1} gives the very V_jk of L of the K draws: those are used.
    """
    if settings.utilities == "values":
        later = samples[:, : settings.utility_samples]
    elif settings.utilities == "expected":
        chain, discount = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy), mdps.discount.reshape(-1)[0]
        later = jax.vmap(utilities.expected, in_axes=(0, 0, None, 0))(*chain, discount, progress.utilities)
    else:
        keys = jax.random.split(key, len(samples))
        later = jax.vmap(utilities.sampled, in_axes=(0, 0, None, 0))(keys, mdps, policy, progress.utilities)
    belief = BELIEFS[settings.values].fit(samples, weight)
    return Progress(belief, later, jnp.array(True), progress.sigma)
