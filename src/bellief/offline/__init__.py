"""Logged data in, value posteriors and decisions out."""

from bellief.offline.collect import CollectionPlan, collect_next
from bellief.offline.compare import PolicyComparison, compare
from bellief.offline.evaluate import evaluate
from bellief.offline.improve import Improvement, improve
from bellief.offline.posterior import ValuePosterior
from bellief.offline.statistics import LogStatistics
from bellief.offline.transitions import Transitions

__all__ = [
    "CollectionPlan",
    "Improvement",
    "LogStatistics",
    "PolicyComparison",
    "Transitions",
    "ValuePosterior",
    "collect_next",
    "compare",
    "evaluate",
    "improve",
]
