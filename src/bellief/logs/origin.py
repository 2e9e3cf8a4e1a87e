"""Where a log came from: what a command shows to the person who gave it."""

import dataclasses


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
