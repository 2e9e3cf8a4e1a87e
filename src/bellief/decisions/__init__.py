"""What follows from a posterior: which policy is better, what to do, what to collect, how far to trust it."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellief.decisions.certificates import Certificate, certify
    from bellief.decisions.collect import CollectionPlan, collect_next
    from bellief.decisions.improvement import Improvement, improve
    from bellief.decisions.log_check import LogCheck, check
    from bellief.decisions.policy_comparison import PolicyComparison, compare
    from bellief.decisions.return_variance import VarianceSplit, variance_split
    from bellief.decisions.sensitivity import Sensitivity, prior_sensitivity

# Imported when first used: a command needs a few of them.
_HOMES = {
    "Certificate": "certificates",
    "CollectionPlan": "collect",
    "Improvement": "improvement",
    "LogCheck": "log_check",
    "PolicyComparison": "policy_comparison",
    "Sensitivity": "sensitivity",
    "VarianceSplit": "return_variance",
    "certify": "certificates",
    "check": "log_check",
    "collect_next": "collect",
    "compare": "policy_comparison",
    "improve": "improvement",
    "prior_sensitivity": "sensitivity",
    "variance_split": "return_variance",
}

__all__ = [
    "Certificate",
    "CollectionPlan",
    "Improvement",
    "LogCheck",
    "PolicyComparison",
    "Sensitivity",
    "VarianceSplit",
    "certify",
    "check",
    "collect_next",
    "compare",
    "improve",
    "prior_sensitivity",
    "variance_split",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bellief.decisions' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bellief.decisions.{_HOMES[name]}"), name)
