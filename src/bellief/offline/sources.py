"""Where logs come from: files and Minari datasets, as pieces of a table."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bellief.errors import UserError
from bellief.offline.encode import OPTIONAL, REQUIRED
from bellief.offline.tables import csv_pieces, parquet_pieces, shown

MINARI = "minari:"
PARQUET = (".parquet", ".pq")


def pieces(path: str | os.PathLike) -> Iterator[pd.DataFrame]:
    """A file's rows in pieces, by the ending of its name; `minari:NAME` is a dataset of Minari's."""
    if str(path).startswith(MINARI):
        return minari_pieces(str(path).removeprefix(MINARI))
    if Path(path).suffix.lower() in PARQUET:
        return parquet_pieces(Path(path), REQUIRED, OPTIONAL)
    return csv_pieces(Path(path), REQUIRED)


def minari_pieces(dataset: Any) -> Iterator[pd.DataFrame]:
    """A Minari dataset, or the name of one that is on this machine, an episode at a time."""
    if isinstance(dataset, str):
        dataset = _load_minari(dataset)
    for what, space in (("observation", dataset.observation_space), ("action", dataset.action_space)):
        if type(space).__name__ != "Discrete":
            raise UserError(
                f"The {what} space of this Minari dataset is {shown(space)}, and a tabular belief needs a Discrete "
                "one: cut continuous features into bins and use Transitions.from_arrays; the linear-Gaussian belief "
                "for continuous features cannot be reached from here yet."
            )
    # Gymnasium's Discrete spaces may begin anywhere.
    first_state, first_action = int(dataset.observation_space.start), int(dataset.action_space.start)
    for number, episode in enumerate(dataset.iterate_episodes()):
        observations = np.asarray(episode.observations).astype(np.int64) - first_state
        steps = len(episode.rewards)
        if len(observations) != steps + 1:
            raise UserError(f"Episode {number} of this Minari dataset has no last observation; record it again.")
        yield pd.DataFrame(
            {
                "state": observations[:-1],
                "action": np.asarray(episode.actions).astype(np.int64) - first_action,
                "reward": np.asarray(episode.rewards, dtype=np.float64),
                "next_state": observations[1:],
                "terminated": np.asarray(episode.terminations, dtype=bool),
                "truncated": np.asarray(episode.truncations, dtype=bool),
                "episode": np.full(steps, number),
            }
        )


def _load_minari(name: str) -> Any:
    try:
        import minari
    except ImportError:
        raise UserError("Minari datasets need minari: pip install 'bellief[data]'.") from None
    try:
        return minari.load_dataset(name)
    except (FileNotFoundError, ValueError):
        here = ", ".join(sorted(minari.list_local_datasets())[:5]) or "none"
        raise UserError(
            f"There is no Minari dataset '{shown(name)}' on this machine (there are: {here}); "
            f"'minari download {shown(name)}' may fetch it."
        ) from None
