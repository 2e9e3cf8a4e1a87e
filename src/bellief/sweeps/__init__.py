"""Experiments that survive: a grid of environments, agents and settings, computed cell by cell into a store.

`load_spec` reads a YAML file, `run_sweep` computes what is missing, `open_store` reads what is there. Nothing here is
imported before it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellief.sweeps.spec import Spec, load_spec
    from bellief.sweeps.store import Store
    from bellief.sweeps.store_reader import Condition, Curves, SweepResults, open_store
    from bellief.sweeps.sweep import run_sweep

_HOMES = {
    "Condition": "store_reader",
    "Curves": "store_reader",
    "Spec": "spec",
    "Store": "store",
    "SweepResults": "store_reader",
    "load_spec": "spec",
    "open_store": "store_reader",
    "run_sweep": "sweep",
}

__all__ = ["Condition", "Curves", "Spec", "Store", "SweepResults", "load_spec", "open_store", "run_sweep"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bellief.sweeps' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bellief.sweeps.{_HOMES[name]}"), name)
