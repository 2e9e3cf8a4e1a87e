"""`gaussian.semidefinite_root` as one kernel on an NVIDIA GPU.

One elimination is a handful of operations on one small matrix, and each needs the one before. Called one by one they
take a GPU microseconds each, however small they are; here a matrix stays on one multiprocessor until it is done.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

# Threads that share a matrix come in groups of 32.
WARPS = 4


def root(covariance: Float[Array, "S S"], interpret: bool = False) -> Float[Array, "S S"]:
    """Upper triangular R with R^T R = covariance, and zero rows where no variance is left."""
    states = covariance.shape[0]
    # Rows and columns that are added have no variance.
    added = [(0, max(16, pallas.next_power_of_2(states)) - states)] * 2
    padded = jnp.pad(covariance, added)
    whole = pallas.pallas_call(
        functools.partial(_kernel, states),
        out_shape=jax.ShapeDtypeStruct(padded.shape, padded.dtype),
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=1),
    )(padded)
    return whole[:states, :states]


def _kernel(states: int, covariance, output):
    index = jnp.arange(covariance.shape[0])
    on_diagonal = index[:, None] == index[None]
    given = covariance[...]
    floor = 8 * states * jnp.finfo(covariance.dtype).eps * jnp.sum(jnp.where(on_diagonal, given, 0), axis=0)

    def eliminate(pivot, rest):
        # Registers have no addresses: what belongs to a place is added up from all, with zeros elsewhere.
        here = index == pivot
        row = jnp.sum(jnp.where(here[:, None], rest, 0), axis=0)
        variance, least = (jnp.sum(jnp.where(here, every, 0)) for every in (row, floor))
        has_variance = variance > least
        row = jnp.where(has_variance & (index >= pivot), row / jnp.sqrt(jnp.where(has_variance, variance, 1)), 0)
        output[pivot] = row  # padding rows are never read
        return rest - row[:, None] * row[None]

    jax.lax.fori_loop(0, states, eliminate, given)
