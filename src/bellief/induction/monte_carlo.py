"""The paper's Algorithm 1: the value distribution by Monte Carlo, the reference for every other method.

>>> import jax, numpy as np
>>> from bellief.envs import make
>>> from bellief.induction import monte_carlo
>>> chain = jax.tree.map(np.float32, make("nchain").mdp(discount=0.9))
>>> draw = lambda key: chain._replace(reward=chain.reward + jax.random.normal(key))
>>> monte_carlo.values(jax.random.key(0), 3, draw, np.full((5, 2), 0.5, np.float32)).shape
(3, 5)
>>> monte_carlo.in_batches(lambda number: number**2, count=4, size=8)
Array([0, 1, 4, 9], dtype=int32)
"""

from collections.abc import Callable

import jax
from jaxtyping import Array, Float, Key

from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP

# Memory for MDPs held at once while drawing; enough to keep a CPU busy, small compared with any machine's memory.
BATCH_BYTES = 128_000_000


def values(
    key: Key[Array, ""],
    count: int,
    draw: Callable[[Array], TabularMDP],
    policy: Float[Array, "S A"],
    horizon: int | None = None,
) -> Float[Array, "J S"]:
    """Values of `policy` in `count` MDPs from `draw(key)`: exact solutions, or those of a finite horizon.

    MDP number j depends on the key and on j alone, so a longer list begins with the shorter one.
    """

    def one_mdp(index):
        mdp = draw(jax.random.fold_in(key, index))
        return bellman.evaluate_exact(mdp, policy) if horizon is None else bellman.evaluate_finite(mdp, policy, horizon)

    states, actions = policy.shape
    return in_batches(one_mdp, count, 8 * states * states * actions)


def in_batches(function: Callable[[Array], Array], count: int, size: int) -> Array:
    """`function` of 0, ..., count - 1, batched as far as memory allows, where one needs `size` bytes."""
    batches = -(-count // max(1, min(count, BATCH_BYTES // size)))
    # Equal batches and a few numbers too many: a remainder would be computed concurrently with the batches, and two
    # linear solvers that share two threads can deadlock.
    each = -(-count // batches)
    return jax.lax.map(function, jax.numpy.arange(batches * each), batch_size=each)[:count]
