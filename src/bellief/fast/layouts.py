"""The same arithmetic in an order or a layout that a CPU or a GPU computes faster."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import rules
from bellief.beliefs import gamma
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.values import gaussian

# Single-precision numbers that a CPU works on at once. The rest of a row is computed number by number, which for short
# rows takes longer than everything else.
VECTOR = 8
# A GPU's matrix units multiply shorter numbers. Three such products make up one in single precision, and are faster
# than one without those units.
TENSOR_CORES = jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3
# A shape for which the Gamma sampler all but never rejects.
LARGE_SHAPE = 1e6


def unrolled_root(covariance: Float[Array, "S S"]) -> Float[Array, "S S"]:
    """`gaussian.semidefinite_root`; for a short elimination no loop is faster than a loop."""
    carry = (covariance, jnp.zeros_like(covariance))
    for index in range(covariance.shape[0]):
        carry = gaussian.eliminate(covariance, index, carry)
    return carry[1]


def _tensor_core_product(left: Float[Array, "n m"], right: Float[Array, "m p"]) -> Float[Array, "n p"]:
    """left @ right on a GPU's matrix units."""
    return jnp.matmul(left, right, precision=TENSOR_CORES)


def gaussian_sample_on_tensor_cores(normals: Float[Array, "K*R"], belief: gaussian.Gaussian) -> Float[Array, "K S"]:
    """`gaussian.sample_with`."""
    return belief.mean + _tensor_core_product(normals.reshape(-1, belief.factor.shape[0]), belief.factor)


def expected_on_tensor_cores(
    transition: Float[Array, "S S"], reward: Float[Array, "S"], discount: Float[Array, ""], later: Float[Array, "L S"]
) -> Float[Array, "L S"]:
    """`utilities.expected`."""
    return reward + _tensor_core_product(transition, (discount * later).T).T


def induce_few_states(
    mdps: TabularMDP, discount: float, tie_breakers: Float[Array, "H S*A"]
) -> tuple[Int[Array, "S"], Float[Array, "J S"]]:
    """`mmbi.induce` with MDPs along the last axis, on which a CPU works, and empty MDPs to make whole vectors of it."""
    count = mdps.reward.shape[0]
    padding = (0, -count % VECTOR)
    rows = jnp.pad(discount * mdps.transition.transpose(3, 1, 2, 0), ((0, 0), (0, 0), (0, 0), padding))
    reward = jnp.pad(mdps.reward.transpose(1, 2, 0), ((0, 0), (0, 0), padding))
    # The barrier keeps XLA from transposing anew in every step.
    rows, reward = jax.lax.optimization_barrier((rows, reward))
    states = jnp.arange(reward.shape[0])

    def step(carry, row):
        values, _ = carry
        q_values = sum((part * after for part, after in zip(rows, values, strict=True)), start=reward)
        actions = rules.argmax_with(row, jnp.sum(q_values, axis=-1) / count)
        return (q_values[states, actions], actions), None

    first = (jnp.zeros_like(reward[:, 0]), jnp.zeros(len(states), jnp.int32))
    (values, actions), _ = jax.lax.scan(step, first, tie_breakers)
    return actions, values[:, :count].T


def sample_whole_vectors(key: Key[Array, ""], shape: Float[Array, "*dims"]) -> Float[Array, "*dims"]:
    """`gamma.sample_log_gamma`, padded to whole vectors; a number's draw does not depend on how many follow it."""
    row = shape.reshape(-1)
    padded = jnp.pad(row, (0, -row.shape[0] % VECTOR), constant_values=LARGE_SHAPE)
    return gamma.sample_log_gamma.plain(key, padded)[: row.shape[0]].reshape(shape.shape)
