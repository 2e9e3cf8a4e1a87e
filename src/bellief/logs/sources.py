"""Where logs come from: files and Minari datasets, as pieces of a table."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bellief.errors import UserError
from bellief.logs.encode import OPTIONAL, REQUIRED
from bellief.logs.feature_columns import as_frame, feature_names, required_columns
from bellief.logs.tables import csv_pieces, parquet_pieces, shown

MINARI = "minari:"
PARQUET = (".parquet", ".pq")


# A log that was opened: its rows in pieces, and the names of its columns.
Opened = tuple[Iterator[pd.DataFrame], Sequence[str]]


def open_log(path: str | os.PathLike) -> Opened:
    """A file, by the ending of its name; `minari:NAME` is a dataset of Minari's."""
    if str(path).startswith(MINARI):
        return minari_log(str(path).removeprefix(MINARI))
    return (parquet_log if Path(path).suffix.lower() in PARQUET else csv_log)(path)


def has_features(path: str | os.PathLike) -> bool:
    """Whether the states of a log are vectors."""
    return bool(feature_names(open_log(path)[1], f"{path}: "))


def csv_log(path: str | os.PathLike) -> Opened:
    """A CSV file."""
    columns = _header(csv_pieces(Path(path), (), rows=1))
    return csv_pieces(Path(path), _required(columns, path)), columns


def parquet_log(path: str | os.PathLike) -> Opened:
    """A Parquet file."""
    columns = _header(parquet_pieces(Path(path), (), None))
    return parquet_pieces(Path(path), _required(columns, path), OPTIONAL), columns


def _header(pieces: Iterator[pd.DataFrame]) -> Sequence[str]:
    """Names of the columns; none where the file cannot be read, which reading the rows will explain."""
    with contextlib.suppress(UserError):
        return [str(name) for name in next(pieces).columns]
    return []


def _required(columns: Sequence[str], path: str | os.PathLike) -> tuple[str, ...]:
    names = feature_names(columns, f"{path}: ")
    return required_columns(names) if names else REQUIRED


def minari_log(dataset: Any) -> Opened:
    """A Minari dataset, or the name of one that is on this machine, an episode at a time."""
    if isinstance(dataset, str):
        dataset = _load_minari(dataset)
    kinds = {what: type(getattr(dataset, f"{what}_space")).__name__ for what in ("observation", "action")}
    if kinds["observation"] == "Box" and len(dataset.observation_space.shape) == 1:
        columns: Sequence[str] = required_columns([str(place) for place in range(dataset.observation_space.shape[0])])
    elif kinds["observation"] == "Discrete":
        columns = REQUIRED
    else:
        raise UserError(
            f"The observation space of this Minari dataset is {shown(dataset.observation_space)}, and it must be "
            "Discrete or a Box of one dimension: build arrays of your own and use Transitions.from_arrays."
        )
    if kinds["action"] != "Discrete":
        raise UserError(
            f"The action space of this Minari dataset is {shown(dataset.action_space)}, and it must be Discrete: cut "
            "continuous actions into bins and use Transitions.from_arrays."
        )
    return _minari_pieces(dataset, discrete=kinds["observation"] == "Discrete"), columns


def _minari_pieces(dataset: Any, discrete: bool) -> Iterator[pd.DataFrame]:
    # Gymnasium's Discrete spaces may begin anywhere.
    first_action = int(dataset.action_space.start)
    for number, episode in enumerate(dataset.iterate_episodes()):
        observations = np.asarray(episode.observations)
        steps = len(episode.rewards)
        if len(observations) != steps + 1:
            raise UserError(f"Episode {number} of this Minari dataset has no last observation; record it again.")
        columns = {
            "action": np.asarray(episode.actions).astype(np.int64) - first_action,
            "reward": np.asarray(episode.rewards, dtype=np.float64),
            "terminated": np.asarray(episode.terminations, dtype=bool),
            "truncated": np.asarray(episode.truncations, dtype=bool),
            "episode": np.full(steps, number),
        }
        if discrete:
            observations = observations.astype(np.int64) - int(dataset.observation_space.start)
            yield pd.DataFrame(columns | {"state": observations[:-1], "next_state": observations[1:]})
        else:
            yield as_frame(observations[:-1], observations[1:], columns)


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
