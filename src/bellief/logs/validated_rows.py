"""Validated rows of a log, as arrays."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int


class Columns(NamedTuple):
    """Validated rows. Until the last piece has been read, labels are numbered in the order of their appearance."""

    state: Int[np.ndarray, "n"]
    action: Int[np.ndarray, "n"]
    reward: Float[np.ndarray, "n"]
    next_state: Int[np.ndarray, "n"]
    terminated: Bool[np.ndarray, "n"]
    first: Bool[np.ndarray, "n"]
