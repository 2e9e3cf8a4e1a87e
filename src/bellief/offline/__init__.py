"""Logged data in, value posteriors and decisions out."""

from bellief.logs import FeatureTransitions, LogStatistics, Tally, Transitions
from bellief.offline.calibration import Certificate, certify
from bellief.offline.collect import CollectionPlan, collect_next
from bellief.offline.compare import PolicyComparison, compare
from bellief.offline.evaluate import evaluate
from bellief.offline.features import FeatureSettings, evaluate_features
from bellief.offline.improve import Improvement, improve
from bellief.offline.posterior import ValuePosterior
from bellief.offline.predictive import LogCheck, check
from bellief.offline.sensitivity import Sensitivity, prior_sensitivity
from bellief.offline.variance import VarianceSplit, variance_split

__all__ = [
    "Certificate",
    "CollectionPlan",
    "FeatureSettings",
    "FeatureTransitions",
    "Improvement",
    "LogCheck",
    "LogStatistics",
    "PolicyComparison",
    "Sensitivity",
    "Tally",
    "Transitions",
    "ValuePosterior",
    "VarianceSplit",
    "certify",
    "check",
    "collect_next",
    "compare",
    "evaluate",
    "evaluate_features",
    "improve",
    "prior_sensitivity",
    "variance_split",
]
