"""Logged data in, value posteriors out."""

from bellief.offline.calibration import Certificate, certify
from bellief.offline.evaluate import evaluate
from bellief.offline.posterior import ValuePosterior
from bellief.offline.predictive import LogCheck, check
from bellief.offline.sensitivity import Sensitivity, prior_sensitivity
from bellief.offline.transitions import Transitions
from bellief.offline.variance import VarianceSplit, variance_split

__all__ = [
    "Certificate",
    "LogCheck",
    "Sensitivity",
    "Transitions",
    "ValuePosterior",
    "VarianceSplit",
    "certify",
    "check",
    "evaluate",
    "prior_sensitivity",
    "variance_split",
]
