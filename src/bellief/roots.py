"""Triangular roots R of sums of squares, R^T R = sum of row row^T, kept up to date one row at a time."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def rotate_in(root: Float[Array, "n n"], row: Float[Array, "n"]) -> Float[Array, "n n"]:
    """The root of root^T root + row row^T, by one Givens rotation for each entry of its diagonal (no zeros)."""

    def rotate(index, carry):
        root, row = carry
        pivot, entry = root[index, index], row[index]
        length = jnp.sqrt(pivot**2 + entry**2)
        cosine, sine = pivot / length, entry / length
        above = root[index]
        return root.at[index].set(cosine * above + sine * row), cosine * row - sine * above

    return jax.lax.fori_loop(0, row.shape[0], rotate, (root, row), unroll=4)[0]
