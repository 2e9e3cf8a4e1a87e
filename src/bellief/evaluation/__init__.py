"""From logs to posterior distributions of values."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellief.evaluation.feature_evaluation import FeatureSettings, evaluate_features
    from bellief.evaluation.policy_value import evaluate
    from bellief.evaluation.posterior import ValuePosterior

# Imported when first used: a command needs a few of them.
_HOMES = {
    "FeatureSettings": "feature_evaluation",
    "ValuePosterior": "posterior",
    "evaluate": "policy_value",
    "evaluate_features": "feature_evaluation",
}

__all__ = [
    "FeatureSettings",
    "ValuePosterior",
    "evaluate",
    "evaluate_features",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bellief.evaluation' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bellief.evaluation.{_HOMES[name]}"), name)
