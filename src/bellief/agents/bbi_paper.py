"""Bayesian Backwards Induction: the paper's Algorithm 3 with its Method 1, for tabular MDPs.

Sample MDPs from the posterior. From i = H back to 1: sample values V_k of step i + 1, weigh the MDPs by each of them,
take the action with the best mean Q, back the samples up under it, and fit the belief psi_i to what comes out. Between
updates the agent follows pi_1 as a stationary policy; `bbi_every_step` returns all pi_i and psi_i.

Deviation: Algorithm 3 weighs again after choosing pi_i; V_{i+1} depends on later policies only, so nothing changes.

>>> import jax
>>> from bellief.agents import bbi_paper
>>> from bellief.envs import make
>>> config = bbi_paper.Config(horizon=5, mdps=3, samples=4, utility_samples=2)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = bbi_paper.init(key, config, spaces)
>>> state, info = jax.jit(bbi_paper.plan, static_argnums=(1, 2))(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_sd.shape
('State', 'Info', (5,))
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import rules
from bellief.agents.tabular_agent import State, act, init, policy, sample_mdps, update, value_span, zeros
from bellief.beliefs import tabular
from bellief.errors import UserError, require
from bellief.induction import method1
from bellief.mdp import utilities
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.replaceable import replaceable
from bellief.types import Spaces

__all__ = ["Config", "Info", "State", "act", "init", "plan", "policy", "update"]


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; the defaults are the paper's. `samples`, K, is 50, or 20 from 100 states on, unless it is given."""

    horizon: int = 100
    discount: float = 0.99
    mdps: int = 10
    samples: int | None = None
    utility_samples: int = 10
    utilities: str = "values"
    likelihood: str = "mixture"
    sigma_fraction: float = 0.01
    prior: tabular.Prior = tabular.PAPER_PRIOR

    def __post_init__(self):
        require(0 < self.discount <= 1, f"discount must lie in (0, 1], not {self.discount}.")
        if self.horizon < 1 or self.mdps < 1:
            raise UserError(f"horizon and mdps must be at least 1, not {self.horizon} and {self.mdps}.")
        self.method1_settings(1)

    def method1_settings(self, states: int) -> method1.Settings:
        """Settings of the induction for a problem with so many states."""
        samples = self.samples if self.samples is not None else (50 if states < 100 else 20)
        choices = (self.utility_samples, self.utilities, self.likelihood, self.sigma_fraction)
        return method1.Settings("gaussian", samples, *choices)


class Info(NamedTuple):
    """Diagnostics of one plan. Counts are over all induction steps; value mean and spread are those of the first."""

    effective_sample_size: Float[Array, ""]
    resamples: Int[Array, ""]
    doublings: Int[Array, ""]
    value_mean: Float[Array, "S"]
    value_sd: Float[Array, "S"]


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Sample MDPs, run the induction from V_H back to V_1, keep the first step's actions."""
    mdp_key, induction_key = jax.random.split(key)
    mdps = sample_mdps(jax.random.split(mdp_key, config.mdps), config.prior, state.belief, spaces, config.discount)
    sigma = config.sigma_fraction * value_span(config, spaces, state.belief)
    settings = config.method1_settings(spaces.states)
    actions, info = induce(induction_key, settings, config.horizon, mdps, zeros(mdps), sigma, mean_q)
    return State(state.belief, actions), info


# Scores of all states and actions, from a key, the MDPs, the value samples V_k and the weights w_jk.
Score = Callable[[Key[Array, ""], TabularMDP, Float[Array, "K S"], Float[Array, "J K"]], Float[Array, "S A"]]


@replaceable
def induce(
    key: Key[Array, ""],
    settings: method1.Settings,
    horizon: int,
    mdps: TabularMDP,
    final: Float[Array, "J S"],
    sigma: Float[Array, ""],
    score: Score,
) -> tuple[Int[Array, "S"], Info]:
    """Algorithm 3 over the sampled MDPs (axis J), which end on the values `final`: the first step's actions."""
    first = (method1.start(settings, final, sigma), jnp.zeros(final.shape[1], jnp.int32))
    (progress, actions), seen = jax.lax.scan(step_back(settings, mdps, score), first, jax.random.split(key, horizon))
    return actions, summed_up(settings, progress, seen)


def step_back(settings: method1.Settings, mdps: TabularMDP, score: Score) -> Callable:
    """One turn of the loop: from psi_{i+1} and a key to psi_i, pi_i and how the weights behaved."""

    def step(carry, step_key):
        progress, _ = carry
        draw_key, score_key, tie_key, utility_key = jax.random.split(step_key, 4)
        values, weight, progress, diagnostics = method1.draw(draw_key, settings, progress)
        actions = rules.argmax(tie_key, score(score_key, mdps, values, weight))
        samples = backups(mdps, actions, values)
        policy = jax.nn.one_hot(actions, mdps.reward.shape[2], dtype=samples.dtype)
        progress = method1.refit(utility_key, settings, progress, mdps, policy, samples, weight)
        return (progress, actions), diagnostics

    return step


def summed_up(settings: method1.Settings, progress: method1.Progress, seen: method1.Diagnostics) -> Info:
    """Diagnostics of all steps together, and of the belief psi_1."""
    counts = (jnp.mean(seen.effective_sample_size), jnp.sum(seen.resamples), jnp.sum(seen.doublings))
    belief = method1.BELIEFS[settings.values]
    return Info(*counts, belief.mean(progress.belief), belief.sd(progress.belief))


def mean_q(
    _: Key[Array, ""], mdps: TabularMDP, values: Float[Array, "K S"], weight: Float[Array, "J K"]
) -> Float[Array, "S A"]:
    """Q_i(s, a) = 1/K sum_jk w_jk (r_j(s, a) + discount sum_s' P_j(s' | s, a) V_k(s')), the sum over k taken first.

    Deviation: the print lacks the discount, gives V the index i, and divides by N_mu although the weights sum to one.
    """
    mixed, share = weight @ values / len(values), jnp.sum(weight, axis=1) / len(values)
    # Summed over j afterwards: contracting both at once would rearrange all transitions first.
    later = jnp.sum(jnp.einsum("jsat,jt->jsa", mdps.transition, mixed), axis=0)
    return jnp.einsum("j,jsa->sa", share, mdps.reward) + mdps.discount.reshape(-1)[0] * later


@replaceable
def backups(mdps: TabularMDP, actions: Int[Array, "S"], values: Float[Array, "K S"]) -> Float[Array, "J K S"]:
    """V_jk = B_j V_k: every value sample backed up in every MDP under the chosen actions."""
    rows, discount = jnp.arange(len(actions)), mdps.discount.reshape(-1)[0]
    chosen = (mdps.transition[:, rows, actions], mdps.reward[:, rows, actions])
    return jax.vmap(lambda transition, reward: utilities.expected(transition, reward, discount, values))(*chosen)
