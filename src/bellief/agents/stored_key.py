"""A random key that an agent keeps in its state, as plain numbers that files can hold.

>>> import jax
>>> from bellief.agents import stored_key
>>> numbers = jax.random.key_data(jax.random.key(3))
>>> stored_key.restore(numbers) == jax.random.key(3)
Array(True, dtype=bool)
"""

import jax
from jaxtyping import Array, Key, UInt32

from bellief.replaceable import replaceable


@replaceable
def restore(numbers: UInt32[Array, "2"]) -> Key[Array, ""]:
    """The key whose `jax.random.key_data` the numbers are."""
    return jax.random.wrap_key_data(numbers)
