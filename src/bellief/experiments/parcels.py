"""What runs have learned, on its way to where plans are made.

Many small transfers take longer than one large: arrays that are small travel in one piece, whatever they are; large
ones as they lie.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# Bytes up to which an array of all runs goes into the common piece.
SMALL = 2**20
# Its numbers are of this size: single precision, and integers.
WORD = np.dtype(np.int32)


class _Leaf(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    in_common: bool


@jax.tree_util.register_pytree_node_class
class Parcel:
    """The arrays of several groups of runs, with the runs along their first axes; `common` has the small ones, as
    words, [runs, n].
    """

    def __init__(self, common: Any, apart: list[Any], content: tuple[_Leaf, ...], structure: Any):
        self.common, self.apart, self.content, self.structure = common, apart, content, structure

    def tree_flatten(self):
        """What travels, and how to read it."""
        return (self.common, self.apart), (self.content, self.structure)

    @classmethod
    def tree_unflatten(cls, how, what):
        """The reverse."""
        return cls(*what, *how)


def pack(groups: tuple[Any, ...]) -> Parcel:
    """In ordinary memory; waits for whoever still computes the groups."""
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
    return Parcel(np.concatenate(common, axis=1), apart, tuple(content), jax.tree.structure(groups[0]))


def unpack(parcel: Parcel) -> Any:
    """The runs' states, in a compiled program."""
    apart, place, leaves = iter(parcel.apart), 0, []
    for leaf in parcel.content:
        if leaf.in_common:
            words = parcel.common[:, place : place + math.prod(leaf.shape)]
            place += words.shape[1]
            leaves.append(jax.lax.bitcast_convert_type(words, leaf.dtype).reshape(-1, *leaf.shape))
        else:
            leaves.append(jnp.concatenate(next(apart)))
    return jax.tree.unflatten(parcel.structure, leaves)
