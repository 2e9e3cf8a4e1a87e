"""Logs of transitions: read, validated, counted."""

from bellief.logs.feature_log import FeatureTransitions
from bellief.logs.origin import Origin
from bellief.logs.read import as_log, as_tally, as_transitions
from bellief.logs.tally import LogStatistics, Tally
from bellief.logs.transitions import Transitions

__all__ = [
    "FeatureTransitions",
    "LogStatistics",
    "Origin",
    "Tally",
    "Transitions",
    "as_log",
    "as_tally",
    "as_transitions",
]
