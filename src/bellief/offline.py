"""The former home of everything about logs; its names are imported from their new packages until the next version."""

import warnings
from typing import Any

from bellief import decisions, evaluation, logs


def __getattr__(name: str) -> Any:
    for home in (evaluation, decisions, logs):
        if name in home.__all__:
            warnings.warn(
                f"bellief.offline is gone: import {name} from {home.__name__}, or use bellief.{name}.",
                FutureWarning,
                stacklevel=2,
            )
            return getattr(home, name)
    raise AttributeError(f"module 'bellief.offline' has no attribute '{name}'")
