"""Matrix products in single precision.

A GPU's matrix units multiply shorter numbers. Three such products make up one in single precision, and are sooner done
than one without those units.

>>> import jax.numpy as jnp
>>> from bellief.products import product
>>> product(jnp.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
[[1.0, 2.0], [3.0, 4.0]]
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bellief.compiler import by_platform


def product(left: Float[Array, "n m"], right: Float[Array, "m p"]) -> Float[Array, "n p"]:
    """left @ right."""

    def on_gpu(left, right):
        return jnp.matmul(left, right, precision=jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3)

    return by_platform(jnp.matmul, on_gpu if left.dtype == jnp.float32 else jnp.matmul, left, right)
