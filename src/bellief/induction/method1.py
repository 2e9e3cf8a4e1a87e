"""One induction step by the paper's Method 1: weigh the sampled MDPs by each value sample, back up, refit.

A step is in two halves, because policy optimisation decides on an action between them: `draw` samples V_{i+1} and
weighs the MDPs, `push` backs the samples up and fits psi_i.

>>> import jax, numpy as np
>>> from bellief.envs import make
>>> from bellief.induction import method1
>>> from bellief.mdp import bellman
>>> worlds = [make("nchain", slip=slip).mdp(discount=0.9) for slip in (0.1, 0.3)]
>>> mdps = jax.tree.map(lambda *leaves: np.float32(leaves), *worlds)
>>> policy, key = np.full((5, 2), 0.5, np.float32), jax.random.key(0)
>>> chain = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
>>> settings = method1.Settings(samples=4, utility_samples=2)
>>> progress = method1.start(settings, final=np.zeros((2, 5), np.float32), sigma=jax.numpy.array(1.0))
>>> luck = method1.luck(jax.random.split(key, 1), settings, progress)
>>> values, weight, progress, seen = method1.draw(key, settings, progress, luck[0])
>>> values.shape, weight.sum(0).tolist(), type(seen).__name__
((4, 5), [1.0, 1.0, 1.0, 1.0], 'Diagnostics')
>>> progress = method1.push(key, settings, progress, mdps, policy, chain, values, weight)
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

from bellief.draws import fold_in
from bellief.errors import UserError
from bellief.induction import weights
from bellief.mdp import utilities
from bellief.mdp.tabular import TabularMDP
from bellief.values import gaussian, histogram

UTILITIES = ("sampled", "expected", "values")
BELIEFS: dict[str, ModuleType] = {"gaussian": gaussian, "histogram": histogram}


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
        _choice("values", self.values, tuple(BELIEFS))
        _choice("utilities", self.utilities, UTILITIES)
        _choice("likelihood", self.likelihood, weights.LIKELIHOODS)
        if not 0 < self.sigma_fraction < math.inf:
            raise UserError(f"sigma_fraction must be positive and finite, not {self.sigma_fraction}.")
        if not 1 <= self.utility_samples <= self.samples:
            raise UserError(
                f"utility_samples must lie between 1 and samples ({self.samples}), not {self.utility_samples}."
            )


def _choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"'{value}' is no choice of {name}; choose one of {', '.join(choices)}.")


class Progress(NamedTuple):
    """What one step hands to the next: psi_{i+1}, utilities for V_{i+1}, and sigma, which only grows within a plan.

    `informed` is false before the first backup: psi_{H+1} does not exist, so there are no utilities for V_H.
    """

    belief: Any
    utilities: Float[Array, "J L S"]
    informed: Bool[Array, ""]
    sigma: Float[Array, ""]


class Diagnostics(NamedTuple):
    """What the weights of one step looked like."""

    effective_sample_size: Float[Array, "*K"]
    resamples: Int[Array, "*K"]
    doublings: Int[Array, "*K"]


def start(settings: Settings, final: Float[Array, "J S"], sigma: Float[Array, ""]) -> Progress:
    """psi_H from the value functions that the sampled MDPs end on; equal ones make a point mass."""
    mdps, states = final.shape
    repeated = jnp.broadcast_to(final[:, None], (mdps, settings.samples, states))
    even = jnp.full((mdps, settings.samples), 1 / mdps, final.dtype)
    return Progress(
        belief=BELIEFS[settings.values].fit(repeated, even),
        utilities=jnp.broadcast_to(final[:, None], (mdps, settings.utility_samples, states)),
        informed=jnp.array(False),
        sigma=sigma,
    )


def luck(
    keys: Key[Array, "H"], settings: Settings, progress: Progress, attempt: Int[Array, ""] | int = 0
) -> Float[Array, "H K R"]:
    """The random numbers of each step's first draw (or second: attempt 1), all at once: drawing them one step at a time
    costs several times more, in small operations.
    """
    module = BELIEFS[settings.values]
    return jax.vmap(lambda key: module.luck(fold_in(key, attempt), progress.belief, settings.samples))(keys)


def draw(
    key: Key[Array, ""], settings: Settings, progress: Progress, luck: Float[Array, "K R"], hasty: bool = False
) -> tuple[Float[Array, "K S"], Float[Array, "J K"], Progress, Diagnostics]:
    """V_k ~ psi_{i+1} and the weights w_jk; `luck` is what the function of that name gave for this step's key.

    Unstable weights are cured as the paper says: draw the values again once, then double sigma until the sums hold.
    With `hasty` they are not: `resamples` says of each value sample whether they would have to be. Summing that up, and
    the sizes, is left to the caller, who can do so for all steps at once.
    """
    module = BELIEFS[settings.values]

    def unstable(carry):
        number, _, _, _, is_unstable = carry
        return is_unstable & (number <= settings.max_doublings)

    def again(carry):
        """Attempt 0 is the first draw by logarithms, 1 the second draw; a doubling keeps the second draw's values."""
        number, sigma = carry[0] + 1, carry[1]
        sigma = jnp.where(number >= 2, 2 * sigma, sigma)
        # What does not change in a loop XLA computes before it, needed or not; so the key depends on the number.
        values = module.sample(fold_in(key, jnp.minimum(number, 1)), progress.belief, settings.samples)
        likelihood = weights.log_likelihood(values, progress.utilities, sigma, settings.likelihood)
        return number, sigma, values, weights.normalise(likelihood), weights.is_unstable(likelihood)

    values = module.sample_with(luck, progress.belief)
    weight, trusted = weights.plain(values, progress.utilities, progress.sigma, settings.likelihood)
    weight = jnp.where(progress.informed, weight, 1 / weight.shape[0])
    if hasty:
        doubtful = (progress.informed & ~trusted).astype(jnp.int32)
        sizes = weights.effective_sample_size(weight)
        return values, weight, progress, Diagnostics(sizes, doubtful, jnp.zeros_like(doubtful))
    unsure = progress.informed & ~jnp.all(trusted)
    first = (jnp.array(-1, jnp.int32), progress.sigma, values, weight, unsure)
    number, sigma, values, weight, _ = jax.lax.while_loop(unstable, again, first)
    diagnostics = Diagnostics(
        effective_sample_size=jnp.mean(weights.effective_sample_size(weight)),
        resamples=jnp.clip(number, 0, 1),
        doublings=jnp.maximum(number - 1, 0),
    )
    return values, weight, progress._replace(sigma=sigma), diagnostics


def push(
    key: Key[Array, ""],
    settings: Settings,
    progress: Progress,
    mdps: TabularMDP,
    policy: Float[Array, "S A"],
    chain: tuple[Float[Array, "J S S"], Float[Array, "J S"]],
    values: Float[Array, "K S"],
    weight: Float[Array, "J K"],
    samples: Float[Array, "J K S"] | None = None,
) -> Progress:
    """V_jk = B_j V_k for every pair, psi_i fitted to them with the weights, and the utilities for V_i.

    `chain` holds each MDP's transition matrix and reward under the policy; `samples` are the V_jk, where they are known
    already. The paper's third utility formula applied to L draws of psi_{i+1} gives the very V_jk of L of the K draws,
    so those are used.

    Deviation: the paper's Algorithm 3 weighs a second time after the policy is chosen. The weights concern V_{i+1},
    which depends on later policies only, so the second pass would compute the same numbers.
    """
    transition, reward = chain
    discount = mdps.discount.reshape(-1)[0]
    if samples is None:
        samples = jax.vmap(utilities.expected, in_axes=(0, 0, None, None))(transition, reward, discount, values)
    if settings.utilities == "values":
        later = samples[:, : settings.utility_samples]
    elif settings.utilities == "expected":
        later = jax.vmap(utilities.expected, in_axes=(0, 0, None, 0))(transition, reward, discount, progress.utilities)
    else:
        keys = jax.random.split(key, transition.shape[0])
        later = jax.vmap(utilities.sampled, in_axes=(0, 0, None, 0))(keys, mdps, policy, progress.utilities)
    belief = BELIEFS[settings.values].fit(samples, weight)
    return Progress(belief, later, jnp.array(True), progress.sigma)
