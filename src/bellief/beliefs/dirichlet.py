"""Dirichlet belief about the rows of a transition table; the state is a table of exact integer counts.

Rows lie along the last axis; any number of leading axes index independent rows.

>>> import jax, numpy as np
>>> from bellief.beliefs import dirichlet
>>> counts = dirichlet.update(dirichlet.init(rows=(2,), outcomes=3), (np.array([0, 0]),), np.array([1, 1]))
>>> print(np.asarray(dirichlet.mean(1.0, counts)).round(2))
[[0.2  0.6  0.2 ]
 [0.33 0.33 0.33]]
>>> row = dirichlet.sample(jax.random.key(0), 1.0, counts)
>>> row.sum(-1).round(3).tolist(), dirichlet.log_density(1.0, counts, row).shape
([1.0, 1.0], (2,))
"""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.beliefs.gamma import sample_log_gamma

# A row's prior is drawn by its jumps up to this total weight; JUMPS of them then miss less than exp(-36) of it.
LARGEST_PROCESS = 2.0
JUMPS = 72


def init(rows: tuple[int, ...], outcomes: int) -> Int[Array, "*rows O"]:
    """No observations yet."""
    return jnp.zeros((*rows, outcomes), jnp.int32)


def update(counts: Int[Array, "*rows O"], row: tuple, outcome: Int[Array, "*batch"]) -> Int[Array, "*rows O"]:
    """Count one outcome, or a batch of them, in the rows that `row` (a tuple of indices) names."""
    return counts.at[(*row, outcome)].add(1)


def mean(prior: float, counts: Int[Array, "*rows O"], dtype: jnp.dtype = jnp.float32) -> Float[Array, "*rows O"]:
    """Posterior mean of each row."""
    concentration = prior + counts.astype(dtype)
    return concentration / jnp.sum(concentration, axis=-1, keepdims=True)


def log_density(prior: float, counts: Int[Array, "*rows O"], rows: Float[Array, "*rows O"]) -> Float[Array, "*rows"]:
    """Log of the posterior density of each row."""
    concentration = prior + counts.astype(rows.dtype)
    normaliser = gammaln(jnp.sum(concentration, axis=-1)) - jnp.sum(gammaln(concentration), axis=-1)
    return normaliser + jnp.sum((concentration - 1) * jnp.log(rows), axis=-1)


def sample(
    key: Key[Array, ""],
    prior: float,
    counts: Int[Array, "*rows O"],
    dtype: jnp.dtype = jnp.float32,
    support: int | None = None,
) -> Float[Array, "*rows O"]:
    """One exact draw of every row from its posterior, as normalised Gamma variables.

    `support`, where given, promises that no row has more than that many different observed outcomes, so that the slow
    general sampler runs on that many columns only. What the prior adds to every column is then drawn in a way that
    suits it: half a squared normal for the paper's prior of one half (which *is* Gamma(1/2)), or, where a whole row's
    prior weighs little, the few jumps of a gamma process that are large enough to matter.
    """
    outcomes = counts.shape[-1]
    shortcut = None
    if support is not None and support < outcomes:
        shortcut = _half_squares if prior == 0.5 else _jumps if prior * outcomes <= LARGEST_PROCESS else None
    if shortcut is None or support is None:
        log_weights = sample_log_gamma(key, prior + counts.astype(dtype))
        return jax.nn.softmax(jax.lax.optimization_barrier(log_weights), axis=-1)
    prior_key, seen_key = jax.random.split(key)
    seen, where = jax.lax.top_k(counts, support)
    # Gamma(prior + n) = Gamma(prior) + Gamma(n): observations add to what the prior gave the column.
    added = jnp.where(seen > 0, jnp.exp(sample_log_gamma(seen_key, jnp.maximum(seen, 1).astype(dtype))), 0)
    # In one row until all is added: the last axis is often shorter than a vector instruction.
    weights = shortcut(prior_key, prior, counts.shape, dtype, seen[..., :1] > 0).reshape(-1)
    places = outcomes * jnp.arange(counts.size // outcomes)[:, None] + where.reshape(-1, support)
    weights = weights.at[places].add(added.reshape(-1, support)).reshape(counts.shape)
    # Without the barrier XLA fuses the draw into the row sum, and a GPU kernel takes a minute to compile.
    weights = jax.lax.optimization_barrier(weights)
    return weights / jnp.sum(weights, axis=-1, keepdims=True)


def _half_squares(key, prior: float, shape: tuple[int, ...], dtype, observed) -> Float[Array, "n"]:
    """Gamma(1/2) in every column, all rows in one."""
    del prior, observed
    return jax.random.normal(key, (math.prod(shape),), dtype) ** 2 / 2


def _jumps(
    key, prior: float, shape: tuple[int, ...], dtype, observed: Bool[Array, "*rows 1"]
) -> Float[Array, "*rows O"]:
    """Gamma(prior) in every column of rows whose total shape a = prior * O is small.

    The columns together are a gamma process with independent increments: its jumps are exp(-T_i / a) E_i, with T_i the
    arrivals of a Poisson process and E_i standard exponentials (Bondesson 1982), each in a random column. The first
    JUMPS of them leave out less than exp(-JUMPS / a), far below rounding.

    Where nothing was `observed` only the ratios of a row matter, and they are all there is: with a = 0.1 one row in six
    thousand has nothing that float32 can hold. There the first jump's size is taken out of the row.
    """
    *rows, outcomes = shape
    arrival_key, size_key, column_key = jax.random.split(key, 3)
    arrivals = jnp.cumsum(jax.random.exponential(arrival_key, (*rows, JUMPS), dtype), axis=-1)
    arrivals = arrivals - jnp.where(observed, 0, arrivals[..., :1])
    sizes = jnp.maximum(jax.random.exponential(size_key, (*rows, JUMPS), dtype), jnp.finfo(dtype).tiny)
    jumps = jnp.exp(-arrivals / (prior * outcomes)) * sizes
    columns = jax.random.randint(column_key, (*rows, JUMPS), 0, outcomes)
    where = jnp.indices(columns.shape, sparse=True)[:-1]
    return jnp.zeros(shape, dtype).at[(*where, columns)].add(jumps)
