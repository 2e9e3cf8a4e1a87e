"""The file form of a policy, written by experiments and read by offline evaluation."""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

COLUMNS = ("state", "action", "probability")


def save_policy(path: Path, policy: Float[np.ndarray, "S A"]) -> None:
    """Write the probabilities that are not zero, in the form that `bellief evaluate --policy` reads."""
    state, action = np.nonzero(policy)
    frame = pd.DataFrame({"state": state, "action": action, "probability": np.asarray(policy)[state, action]})
    frame.to_csv(path, index=False)
