"""The file form of a policy, written by experiments and read by the evaluation of logs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from bellief.files import to_csv, write_whole

COLUMNS = ("state", "action", "probability")


def save_policy(
    path: Path,
    policy: Float[np.ndarray, "S A"],
    state_labels: Sequence[str] | None = None,
    action_labels: Sequence[str] | None = None,
) -> None:
    """Write the probabilities that are not zero, in the form that `bellief evaluate --policy` reads."""
    import pandas as pd

    state, action = np.nonzero(policy)
    frame = pd.DataFrame({"state": state, "action": action, "probability": np.asarray(policy)[state, action]})
    for column, labels in (("state", state_labels), ("action", action_labels)):
        if labels is not None:
            frame[column] = np.asarray(labels, dtype=object)[frame[column]]
    write_whole(Path(path), to_csv(frame))
