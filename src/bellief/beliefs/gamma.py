"""Exact Gamma draws for whole arrays at once.

JAX's own sampler splits a key for every element and runs a loop for each; on a CPU that is an order of magnitude
slower than drawing for the whole array and repeating only while some element is still rejected.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.replaceable import replaceable


@replaceable
def sample_log_gamma(key: Key[Array, ""], shape: Float[Array, "*dims"]) -> Float[Array, "*dims"]:
    """Logarithms of independent Gamma(shape, rate 1) draws, by the method of Marsaglia and Tsang (2000).

    Shapes below one use Gamma(a) = Gamma(a + 1) U^(1/a), which is why the logarithm is returned: for a small `a` the
    draw itself underflows while its logarithm does not.
    """
    loop_key, boost_key = jax.random.split(key)
    small = shape < 1
    log_uniform = jnp.log1p(-jax.random.uniform(boost_key, shape.shape, shape.dtype))
    boost = jnp.where(small, log_uniform / shape, 0)
    shifted = jnp.where(small, shape + 1, shape) - 1 / 3
    scale = 1 / jnp.sqrt(9 * shifted)

    def unfinished(carry):
        _, accepted, _ = carry
        return ~jnp.all(accepted)

    def propose(carry):
        log_draw, accepted, round_number = carry
        normal_key, uniform_key = jax.random.split(jax.random.fold_in(loop_key, round_number))
        normal = jax.random.normal(normal_key, shape.shape, shape.dtype)
        log_uniform = jnp.log1p(-jax.random.uniform(uniform_key, shape.shape, shape.dtype))
        root = 1 + scale * normal
        log_cube = 3 * jnp.log(jnp.where(root > 0, root, 1))
        good = (root > 0) & (log_uniform < normal**2 / 2 + shifted * (1 - root**3 + log_cube))
        log_draw = jnp.where(accepted, log_draw, jnp.log(shifted) + log_cube + boost)
        return log_draw, accepted | good, round_number + 1

    first = (jnp.zeros_like(shape), jnp.zeros(shape.shape, bool), jnp.array(0, jnp.int32))
    return jax.lax.while_loop(unfinished, propose, first)[0]
