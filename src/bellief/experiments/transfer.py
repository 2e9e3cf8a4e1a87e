"""Packs agent states for transfer to the device that plans.

Many small transfers take longer than one large one: small arrays are joined into one, whatever their type; large ones
are transferred as they are.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# Bytes up to which an array of all runs is packed.
SMALL = 2**20
# Its numbers are of this size: single precision, and integers.
WORD = np.dtype(np.int32)


class _Leaf(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    in_common: bool


@jax.tree_util.register_pytree_node_class
class Packed:
    """The arrays of several groups of runs, with the runs along their first axes; `common` has the small ones, as
    words, [runs, n].
    """

    def __init__(self, common: Any, apart: list[Any], content: tuple[_Leaf, ...], structure: Any):
        self.common, self.apart, self.content, self.structure = common, apart, content, structure

    def tree_flatten(self):
        """The arrays, and how to read them."""
        return (self.common, self.apart), (self.content, self.structure)

    @classmethod
    def tree_unflatten(cls, how, what):
        """The reverse."""
        return cls(*what, *how)


def pack(groups: tuple[Any, ...]) -> Packed:
    """In host memory; waits until the groups are computed."""
    all_pieces = list(zip(*map(jax.tree.leaves, groups), strict=True))
    runs = sum(map(len, all_pieces[0]))
    common, apart, content = [np.zeros((runs, 0), WORD)], [], []
    for pieces in all_pieces:
        small = sum(piece.nbytes for piece in pieces) <= SMALL and pieces[0].dtype.itemsize == WORD.itemsize
        if small:
            common.append(np.concatenate(pieces).reshape(runs, -1).view(WORD))
        else:
            apart.append(tuple(map(np.asarray, pieces)))
        content.append(_Leaf(pieces[0].shape[1:], str(pieces[0].dtype), small))
    return Packed(np.concatenate(common, axis=1), apart, tuple(content), jax.tree.structure(groups[0]))


def unpack(packed: Packed) -> Any:
    """The runs' states, in a compiled program."""
    apart, place, leaves = iter(packed.apart), 0, []
    for leaf in packed.content:
        if leaf.in_common:
            words = packed.common[:, place : place + math.prod(leaf.shape)]
            place += words.shape[1]
            leaves.append(jax.lax.bitcast_convert_type(words, leaf.dtype).reshape(-1, *leaf.shape))
        else:
            leaves.append(jnp.concatenate(next(apart)))
    return jax.tree.unflatten(packed.structure, leaves)
