"""Bellief: Bayesian reinforcement learning with posterior distributions over value functions.

Public names are imported when they are first used, so that `import bellief` and `bellief --help` stay fast.
"""

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from bellief.errors import UserError
from bellief.registry import register_with_gymnasium

if TYPE_CHECKING:
    from bellief.agents.files import SavedAgent, load_agent, save_agent
    from bellief.envs import make
    from bellief.experiments import AgentComparison, RunResult, compare_agents, run
    from bellief.offline import (
        CollectionPlan,
        FeatureSettings,
        FeatureTransitions,
        Improvement,
        LogStatistics,
        PolicyComparison,
        Transitions,
        ValuePosterior,
        certify,
        check,
        collect_next,
        compare,
        evaluate,
        evaluate_features,
        improve,
        prior_sensitivity,
        variance_split,
    )

try:
    __version__ = version("bellief")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"


_HOMES = {
    "AgentComparison": "bellief.experiments",
    "compare_agents": "bellief.experiments",
    "RunResult": "bellief.experiments",
    "SavedAgent": "bellief.agents.files",
    "load_agent": "bellief.agents.files",
    "save_agent": "bellief.agents.files",
    "CollectionPlan": "bellief.offline",
    "FeatureSettings": "bellief.offline",
    "FeatureTransitions": "bellief.offline",
    "Improvement": "bellief.offline",
    "LogStatistics": "bellief.offline",
    "PolicyComparison": "bellief.offline",
    "Transitions": "bellief.offline",
    "ValuePosterior": "bellief.offline",
    "certify": "bellief.offline",
    "check": "bellief.offline",
    "collect_next": "bellief.offline",
    "compare": "bellief.offline",
    "evaluate": "bellief.offline",
    "evaluate_features": "bellief.offline",
    "improve": "bellief.offline",
    "prior_sensitivity": "bellief.offline",
    "variance_split": "bellief.offline",
    "make": "bellief.envs",
    "run": "bellief.experiments",
}

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
    "Transitions",
    "UserError",
    "ValuePosterior",
    "__version__",
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
    if name not in _HOMES:
        raise AttributeError(f"module 'bellief' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


# `gymnasium.make("bellief:NChain-v0")` imports this package and expects the names to be known from then on.
register_with_gymnasium()
