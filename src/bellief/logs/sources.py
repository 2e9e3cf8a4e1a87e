"""Tables of a log, one piece at a time, with the columns under their roles' names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bellief.errors import UserError
from bellief.logs.columns import REQUIRED, Taken, take
from bellief.logs.engine import header
from bellief.logs.feature_columns import as_frame, required_columns
from bellief.logs.labels import shown
from bellief.logs.paths import LogFile
from bellief.logs.tables import csv_pieces, explained, json_pieces, parquet_pieces

MINARI = "minari:"


class TableLog(NamedTuple):
    """A table of rows: what precedes messages about it, what its columns are taken for, and its rows in pieces."""

    source: str
    taken: Taken
    pieces: Iterator[pd.DataFrame]


def frame_log(frame: pd.DataFrame, chosen: Mapping[str, str] | None = None, source: str = "") -> TableLog:
    """A data frame."""
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    taken = take(list(frame.columns), chosen, source)
    return TableLog(source, taken, iter([_renamed(frame, taken)]))


def file_log(file: LogFile, chosen: Mapping[str, str] | None = None, begin: int = 0) -> TableLog:
    """A file, from the piece on that holds row `begin` where its format allows that."""
    taken = take(file_columns(file), chosen, file.source)
    if file.format == "parquet":
        pieces = parquet_pieces(file, list(taken.used), begin=begin)
    else:
        pieces = csv_pieces(file, ()) if file.format == "csv" else json_pieces(file)
    return TableLog(file.source, taken, (_renamed(piece, taken) for piece in pieces))


def file_columns(file: LogFile) -> Sequence[str]:
    """Names of the columns of a file; a file that cannot be read is explained in one sentence."""
    if file.format == "parquet":
        return [str(name) for name in next(parquet_pieces(file)).columns]
    with explained(file, REQUIRED):
        names = header(file)
    if not names:
        raise UserError(f"{file.name} is empty; it needs a header line with {', '.join(REQUIRED)}.")
    return names


def _renamed(frame: pd.DataFrame, taken: Taken) -> pd.DataFrame:
    present = [column for column in taken.used if column in frame.columns]
    return frame[present].rename(columns=taken.used)


def minari_log(dataset: Any) -> TableLog:
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
    taken = take([*columns, "terminated", "truncated", "episode"])
    return TableLog("", taken, _minari_pieces(dataset, discrete=kinds["observation"] == "Discrete"))


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
