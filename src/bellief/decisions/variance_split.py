"""Two kinds of uncertainty about a return: what more data would remove, and what no data can."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bellief.beliefs import dirichlet, normal_gamma, outcomes, tabular
from bellief.induction import monte_carlo
from bellief.logs.labels import Labels
from bellief.logs.tally import LogStatistics
from bellief.logs.transitions import Transitions
from bellief.evaluation.checks import check_numbers
from bellief.evaluation.paper_methods import DenseProblem
from bellief.evaluation.problem import prepare


class VarianceSplit(NamedTuple):
    """Variance of the discounted return from each state, and from the start, in its two parts.

    `epistemic`: the variance over MDPs of the return's mean, the value. `aleatoric`: the mean over MDPs of the return's
    variance within the MDP. They add up to the variance of a return under the posterior. NaN where a variance does not
    exist (a reward never observed under a heavy-tailed prior).

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0] * 40, [0.0, 2.0] * 20, [0] * 40)
    >>> split = bellief.variance_split(data, discount=0.5, draws=50)
    >>> type(split).__name__, bool((split.total == split.epistemic + split.aleatoric).all())
    ('VarianceSplit', True)
    """

    epistemic: Float[np.ndarray, "S"]
    aleatoric: Float[np.ndarray, "S"]
    start_epistemic: float
    start_aleatoric: float
    state_labels: Labels = None

    @property
    def total(self) -> Float[np.ndarray, "S"]:
        """Variance of the return from each state."""
        return self.epistemic + self.aleatoric

    @property
    def share(self) -> Float[np.ndarray, "S"]:
        """Part of each state's variance that more data could remove."""
        return self.epistemic / np.where(self.total > 0, self.total, 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, null where there is no variance."""

        def number(value):
            return float(value) if np.isfinite(value) else None

        names = self.state_labels or range(len(self.epistemic))
        return {
            "start": {"epistemic": number(self.start_epistemic), "aleatoric": number(self.start_aleatoric)},
            "per_state": [
                {"state": state, "epistemic": number(one), "aleatoric": number(other)}
                for state, one, other in zip(names, self.epistemic, self.aleatoric, strict=True)
            ],
        }


def return_variance(
    rows: Float[Array, "S A O"],
    rewards: Float[Array, "S A O"],
    noise: Float[Array, "S A"],
    policy: Float[Array, "S A"],
    discount: Float[Array, ""] | float,
) -> tuple[Float[Array, "S"], Float[Array, "S"]]:
    """Mean and variance of the discounted return from each state of one MDP, by two linear solves (Sobel 1982).

    The second moment M of the return R = r + discount R' satisfies a Bellman equation of its own,
    M(s) = E[r^2 + 2 discount r V(s') + discount^2 M(s')]. `rewards` are means by outcome, because reward and next
    state may go together; an outcome beyond the states is the end, after which nothing is paid.
    """
    states = rows.shape[0]
    identity = jnp.eye(states, dtype=rows.dtype)
    chain = jnp.einsum("sa,sat->st", policy, rows[..., :states])
    values = jnp.linalg.solve(identity - discount * chain, jnp.einsum("sa,sao,sao->s", policy, rows, rewards))
    padded = jnp.pad(values, (0, rows.shape[-1] - states))
    squares = rewards**2 + noise[..., None] ** 2 + 2 * discount * rewards * padded
    moment = jnp.linalg.solve(identity - discount**2 * chain, jnp.einsum("sa,sao,sao->s", policy, rows, squares))
    return values, jnp.maximum(moment - values**2, 0)


def variance_split(
    data: Transitions | LogStatistics,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    prior: "str | tabular.Prior" = "logged",
    reward_scale: float | str | None = None,
    start: Any = None,
    terminates: bool | None = None,
    draws: int = 500,
    seed: int = 0,
) -> VarianceSplit:
    """How much of a return's variance comes from not knowing the MDP, and how much from luck within it.

    The arguments are those of `evaluate`; the return is that of an endless horizon. For the start both parts include
    the luck of the first state only as far as it changes the return's variance: the split is of the return averaged
    over first states within an MDP, so differences between first states count as luck.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0] * 40, [0.0, 2.0] * 20, [0] * 40)
    >>> split = bellief.variance_split(data, discount=0.5, draws=50)
    >>> split.start_aleatoric > split.start_epistemic  # forty rewards tell their mean well; their luck stays
    True
    """
    check_numbers(discount, 0.5, seed, draws=draws)
    ready = prepare(
        data, discount, prior=prior, reward_scale=reward_scale, start=start, terminates=terminates, belief="dense"
    )
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        problem = DenseProblem(ready, policy)
        values, variances = (
            np.asarray(part) for part in _draw(jax.random.key(seed), problem.used, draws=draws, **problem.sampler())
        )
    exists = problem.sd_exists(sampled=True)
    first = problem.start
    means = values @ first
    within = variances @ first + values**2 @ first - means**2
    known = bool(exists[first > 0].all())
    return VarianceSplit(
        epistemic=np.where(exists, values.var(0, ddof=1), np.nan),
        aleatoric=np.where(exists, variances.mean(0), np.nan),
        start_epistemic=float(means.var(ddof=1)) if known else float("nan"),
        start_aleatoric=float(within.mean()) if known else float("nan"),
        state_labels=ready.log.state_labels,
    )


@functools.partial(jax.jit, static_argnames=("draws", "prior", "support"))
def _draw(key, policy, *, draws, belief, discount, prior, support):
    """Value and variance of the return in every state of `draws` sampled MDPs."""
    concentration = prior.concentration(belief.counts.shape[-1])

    def one(index):
        row_key, reward_key = jax.random.split(jax.random.fold_in(key, index))
        rows = dirichlet.sample(row_key, concentration, belief.counts, policy.dtype, support)
        if isinstance(belief, outcomes.OutcomeBelief):
            rewards, noise = outcomes.sample_rewards(reward_key, belief)
        else:
            parameters = normal_gamma.posterior(tabular.reward_prior(prior, policy.dtype), belief.rewards)
            mean, noise = normal_gamma.sample(reward_key, parameters)
            rewards = jnp.broadcast_to(mean[..., None], rows.shape)
        return return_variance(rows, rewards, noise, policy, discount)

    return monte_carlo.in_batches(one, draws, 8 * belief.counts.size)
