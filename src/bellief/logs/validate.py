"""Logs read row by row: where rows are needed, and where the first mistake is to be named."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from bellief.errors import UserError
from bellief.logs.axes import Sizes
from bellief.logs.encode import Encoder
from bellief.logs.feature_columns import refuse_features
from bellief.logs.fold import Folding, Unit
from bellief.logs.origin import Origin, origin_from
from bellief.logs.paths import LogFile
from bellief.logs.sources import TableLog, file_log
from bellief.logs.tally import Tally
from bellief.logs.transitions import Transitions


def rows_of(logs: Sequence[TableLog], states: Sizes, actions: Sizes, labels: bool | None) -> Transitions:
    """All rows of some tables, of whichever kind their states are."""
    names = logs[0].taken.features
    for log in logs:
        if log.taken.features != names:
            raise UserError(f"{log.source}its states have other features than those of {logs[0].source.rstrip(': ')}.")
    if names:
        from bellief.logs.feature_encode import FeatureEncoder
        from bellief.logs.feature_log import FeatureTransitions

        reader = FeatureEncoder(names, actions, labels, logs[0].source, states)
        features = [reader.encode_features(piece) for piece in _pieces(logs, reader)]
        return dataclasses.replace(FeatureTransitions._from_features(features, reader), origin=origin_of(logs))
    encoder = Encoder(states, actions, labels, logs[0].source)
    rows = [encoder.encode(piece) for piece in _pieces(logs, encoder)]
    return dataclasses.replace(Transitions._from_columns(rows, encoder), origin=origin_of(logs))


def tally_of(logs: Sequence[TableLog], states: Sizes, actions: Sizes, labels: bool | None) -> Tally:
    """Counts of some tables, piece by piece; rows are kept only where steps have to be sorted."""
    for log in logs:
        refuse_features(log.taken.features, log.source)
    if any("step" in log.taken.roles for log in logs):
        return rows_of(logs, states, actions, labels).tally()
    encoder = Encoder(states, actions, labels, logs[0].source)
    rows = (encoder.encode(piece) for piece in _pieces(logs, encoder))
    return dataclasses.replace(Tally.from_columns(rows, encoder), origin=origin_of(logs))


def tables_of(files: Sequence[LogFile], columns: Mapping[str, str] | None) -> list[TableLog]:
    """The files as tables in pieces; `columns` are those chosen for some roles."""
    return [file_log(file, columns) for file in files]


def examine(
    unit: Unit,
    folding: Folding,
    states: Sizes,
    actions: Sizes,
    labels: bool | None,
    columns: Mapping[str, str] | None,
) -> None:
    """Check a unit's rows one by one, and raise what is wrong with the first bad one; nothing if all are valid."""
    encoder = Encoder(states, actions, labels)
    if folding.parts:
        encoder.states.decide_as(folding.states)
        encoder.actions.decide_as(folding.actions)
    encoder.begin(unit.file.source, unit.begin)
    for piece in file_log(unit.file, columns, unit.begin).pieces:
        encoder.encode(piece)
        if unit.end is not None and encoder.rows >= unit.end:
            return


def _pieces(logs: Sequence[TableLog], encoder: Encoder) -> Iterator:
    for log in logs:
        encoder.begin(log.source)
        yield from log.pieces


def origin_of(logs: Sequence[TableLog]) -> Origin:
    """What was read, and how it was understood."""
    return origin_from([log.source.removesuffix(": ") for log in logs if log.source], [log.taken for log in logs])
