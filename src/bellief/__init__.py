"""Bellief: Bayesian reinforcement learning with posterior distributions over value functions.

Public names are imported when they are first used, so that `import bellief` and `bellief --help` stay fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bellief.errors import UserError
from bellief.former_modules import find_former_modules
from bellief.registry import register_with_gymnasium

if TYPE_CHECKING:
    from bellief.agents.saved_agent import SavedAgent, load_agent, save_agent
    from bellief.decisions import (
        CollectionPlan,
        Improvement,
        PolicyComparison,
        certify,
        check,
        collect_next,
        compare,
        improve,
        prior_sensitivity,
        variance_split,
    )
    from bellief.envs import make
    from bellief.evaluation import FeatureSettings, ValuePosterior, evaluate, evaluate_features
    from bellief.experiments import AgentComparison, RunResult, compare_agents, run
    from bellief.logs import FeatureTransitions, LogStatistics, Tally, Transitions, as_tally, as_transitions

    __version__: str

_PACKAGES = {
    "bellief.agents.saved_agent": ("SavedAgent", "load_agent", "save_agent"),
    "bellief.decisions": (
        "CollectionPlan",
        "Improvement",
        "PolicyComparison",
        "certify",
        "check",
        "collect_next",
        "compare",
        "improve",
        "prior_sensitivity",
        "variance_split",
    ),
    "bellief.envs": ("make",),
    "bellief.evaluation": ("FeatureSettings", "ValuePosterior", "evaluate", "evaluate_features"),
    "bellief.experiments": ("AgentComparison", "RunResult", "compare_agents", "run"),
    "bellief.logs": ("FeatureTransitions", "LogStatistics", "Tally", "Transitions", "as_tally", "as_transitions"),
}
_HOMES = {name: package for package, names in _PACKAGES.items() for name in names}

__all__ = [
    "AgentComparison",
    "CollectionPlan",
    "FeatureSettings",
    "FeatureTransitions",
    "Improvement",
    "LogStatistics",
    "PolicyComparison",
    "RunResult",
    "SavedAgent",
    "Tally",
    "Transitions",
    "UserError",
    "ValuePosterior",
    "__version__",
    "as_tally",
    "as_transitions",
    "certify",
    "check",
    "collect_next",
    "compare",
    "compare_agents",
    "evaluate",
    "evaluate_features",
    "improve",
    "load_agent",
    "make",
    "prior_sensitivity",
    "run",
    "save_agent",
    "variance_split",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'bellief' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("bellief")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted(__all__)


# `gymnasium.make("bellief:NChain-v0")` imports this package and expects the names to be known from then on.
register_with_gymnasium()
find_former_modules()
