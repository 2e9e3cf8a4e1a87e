"""Modules of version 0.1 under their former names: each import gives the module's present self and a notice.

A finder at the end of Python's list answers only for these names, after all others have found nothing.

>>> from bellief.former_modules import FORMER_MODULES
>>> FORMER_MODULES["bellief.mdp.tabular"]
'bellief.mdp.tabular_mdp'
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

from bellief.errors import notify_once

FORMER_MODULES = {
    "bellief.agents.files": "bellief.agents.saved_agent",
    "bellief.cli.doctor": "bellief.cli.doctor_command",
    "bellief.envs.continuous": "bellief.envs.gymnasium_box",
    "bellief.experiments.collect": "bellief.experiments.event_collector",
    "bellief.mdp.linear": "bellief.mdp.linear_mdp",
    "bellief.mdp.tabular": "bellief.mdp.tabular_mdp",
    "bellief.plots.posterior": "bellief.plots.value_pictures",
    "bellief.sweeps.read": "bellief.sweeps.store_reader",
    "bellief.sweeps.tables": "bellief.sweeps.parquet_tables",
    "bellief.values.gptd": "bellief.values.gptd_values",
    "bellief.values.linear": "bellief.values.linear_values",
}


def find_former_modules() -> None:
    """Make the former names importable. Harmless to call again."""
    if not any(isinstance(finder, _FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(_FormerModules())


class _FormerModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname in FORMER_MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        former = module.__name__
        notify_once(f"{former} is now {FORMER_MODULES[former]}; the former name goes away in 0.3.")
        sys.modules[former] = importlib.import_module(FORMER_MODULES[former])
