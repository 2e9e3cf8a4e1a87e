"""Where a log came from: the files, and which column was used as what."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bellief.logs.columns import Taken

MOST_NOTES = 5


@dataclasses.dataclass(frozen=True)
class Origin:
    """What was read and how it was understood.

    `columns` maps each role (state, action, reward, next_state, terminated, truncated, episode, step) to the column
    that was taken for it.
    """

    files: tuple[str, ...] = ()
    columns: dict[str, str] = dataclasses.field(default_factory=dict)
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def origin_from(files: Sequence[str], taken: "Sequence[Taken]") -> Origin:
    """The columns of the first table, and the unused columns and notes of all tables."""
    unused = dict.fromkeys(column for one in taken for column in one.unused)
    notes = dict.fromkeys(note for one in taken for note in one.notes)
    for name, times in Counter(files).items():
        if times > 1:
            notes[f"{name} is named {times} times, and counts as often."] = None
    features = {name: name for name in taken[0].used.values() if name not in taken[0].roles}
    return Origin(tuple(files), taken[0].roles | features, tuple(unused), tuple(notes)[:MOST_NOTES])
