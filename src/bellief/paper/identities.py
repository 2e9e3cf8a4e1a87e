"""What the paper says beside its figures, on NChain: any q will do, mean-field is the mean MDP, PSRL is MMBI with one
sample, and the induction needs less memory than a tree of beliefs.
"""

import functools
from typing import Any

import numpy as np
from jaxtyping import Float

# Distributions q over the five states, all with full support.
STATE_DISTRIBUTIONS: dict[str, tuple[float, ...]] = {
    "uniform": (0.2, 0.2, 0.2, 0.2, 0.2),
    "mostly the first": (0.96, 0.01, 0.01, 0.01, 0.01),
    "mostly the last": (0.01, 0.01, 0.01, 0.01, 0.96),
    "halving": (16 / 31, 8 / 31, 4 / 31, 2 / 31, 1 / 31),
}
MDPS, SAMPLES, UTILITY_SAMPLES, HORIZON, DISCOUNT = 10, 50, 10, 100, 0.99
# sigma is a hundredth of the span of possible values, 10 / (1 - discount).
SIGMA = 0.01 * 10 / (1 - DISCOUNT)


def induction(
    rng: np.random.Generator,
    transition: Float[np.ndarray, "J S S"],
    reward: Float[np.ndarray, "J S"],
    distribution: Float[np.ndarray, "S"] | None,
) -> tuple[Float[np.ndarray, "S"], Float[np.ndarray, "S"]]:
    """Mean and standard deviation of psi_1 by the paper's Algorithm 2 with a Gaussian, the third rollout formula and
    w_jk proportional to sum_s q(s) sum_l exp(-(V_k(s) - u_jl(s))^2 / 2 sigma^2); without q all weights are equal
    (mean-field).
    """
    mdps, states = reward.shape
    mean, covariance = np.zeros(states), np.zeros((states, states))
    utilities = None
    for _ in range(HORIZON):
        values = rng.multivariate_normal(mean, covariance, SAMPLES, method="eigh", check_valid="ignore")
        weight = np.full((mdps, SAMPLES), 1 / mdps)
        if utilities is not None and distribution is not None:
            density = np.exp(-((values[None, :, None] - utilities[:, None]) ** 2) / (2 * SIGMA**2))
            weight = np.einsum("jkls,s->jk", density, distribution)
            weight /= weight.sum(0)
        backed_up = reward[:, None] + DISCOUNT * np.einsum("jst,kt->jks", transition, values)
        mean = np.einsum("jk,jks->s", weight, backed_up) / SAMPLES
        apart = backed_up - mean
        rooted = (np.sqrt(weight)[..., None] * apart).reshape(-1, states)
        covariance = rooted.T @ rooted / SAMPLES
        utilities = backed_up[:, :UTILITY_SAMPLES]
    return mean, np.sqrt(np.diag(covariance))


@functools.cache
def _sampler(count: int) -> Any:
    """`count` MDPs from a belief, compiled once."""
    import jax

    from bellief.beliefs import tabular

    def draw(key, belief):
        keys = jax.random.split(key, count)
        return jax.vmap(lambda one: tabular.sample(one, tabular.PAPER_PRIOR, belief, DISCOUNT))(keys)

    return jax.jit(draw)


def drawn(data: Any, count: int, seed: int) -> Any:
    """MDPs from the posterior under the paper's prior."""
    import jax
    import jax.numpy as jnp

    from bellief.beliefs import tabular
    from bellief.types import Transition

    columns = (data.state, data.action, np.float32(data.reward), data.next_state, np.zeros(len(data.state), bool))
    seen = Transition(*map(jnp.asarray, columns))
    belief = tabular.update_batch(tabular.init(5, 2), seen)
    return _sampler(count)(jax.random.key(seed), belief)


def chains_of(
    mdps: Any, policy: Float[np.ndarray, "S A"]
) -> tuple[Float[np.ndarray, "J S S"], Float[np.ndarray, "J S"]]:
    """Transition matrices and rewards under a policy."""
    transition = np.einsum("jsat,sa->jst", np.float64(mdps.transition), policy)
    return transition, np.einsum("jsa,sa->js", np.float64(mdps.reward), policy)


def finite_values(transition: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Values of `HORIZON` steps, of one chain or of many."""
    values = np.zeros_like(reward)
    for _ in range(HORIZON):
        values = reward + DISCOUNT * np.einsum("...st,...t->...s", transition, values)
    return values


def distributions_and_mean_field(data: Any, policy: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Mean and spread of the start state's value: the truth, by every q, and mean-field, which is compared with the
    mean of the very MDPs that it was given.
    """
    transition, reward = chains_of(drawn(data, 1_000, seed), policy)
    truth = finite_values(transition, reward)[:, 0]
    own_transition, own_reward = transition[:MDPS], reward[:MDPS]
    found = {"truth": np.array([truth.mean(), truth.std()])}
    for name, weights in {**STATE_DISTRIBUTIONS, "mean-field": None}.items():
        distribution = None if weights is None else np.array(weights)
        mean, sd = induction(np.random.default_rng(seed), own_transition, own_reward, distribution)
        found[name] = np.array([mean[0], sd[0]])
    average = finite_values(own_transition.mean(0), own_reward.mean(0))[0]
    return {**found, "mean MDP": np.array([average, 0.0])}


def one_sample(data: Any, count: int, seed: int) -> dict[str, np.ndarray]:
    """For MDPs from the posterior: the share of states in which MMBI with that one sample acts as PSRL does, and the
    share of the optimal value that its actions lose in that MDP.
    """
    import jax
    import jax.numpy as jnp

    from bellief.mdp import bellman

    mdps = drawn(data, count, seed)

    def one(mdp):
        solution = bellman.policy_iteration(mdp)
        actions = bellman.backward_induction(mdp, HORIZON)[1][0]
        followed = bellman.evaluate_exact(mdp, jax.nn.one_hot(actions, 2, dtype=mdp.reward.dtype))
        same = jnp.mean(actions == jnp.argmax(bellman.action_values(mdp, solution.values), axis=1))
        return same, jnp.max(solution.values - followed) / jnp.max(jnp.abs(solution.values))

    same, lost = jax.jit(jax.vmap(one))(mdps)
    return {"same": np.asarray(same, np.float64), "lost": np.asarray(lost, np.float64)}


def information_states(steps: int) -> np.ndarray:
    """How many different pairs of a state and transition counts NChain's dense belief can reach, by the number of
    steps: what a tree of beliefs holds even where equal beliefs are kept once.
    """
    now: set[tuple[int, tuple[tuple[int, int, int], ...]]] = {(0, ())}
    counted = [1]
    for _ in range(steps):
        following = set()
        for state, seen in now:
            for action in range(2):
                for successor in range(5):
                    following.add((successor, tuple(sorted((*seen, (state, action, successor))))))
        now = following
        counted.append(len(now))
    return np.array(counted)


def numbers_kept() -> int:
    """Numbers that one step of BBI keeps on NChain: MDPs, a Gaussian, its samples and the utilities."""
    mdps = MDPS * (5 * 2 * 5 + 5 * 2)
    return mdps + 5 + 25 + SAMPLES * 5 + MDPS * UTILITY_SAMPLES * 5
