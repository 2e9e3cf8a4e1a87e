"""What follows from a posterior: which policy is better, what to do, what to collect, how far to trust it all."""

from bellief.decisions.certify import Certificate, certify
from bellief.decisions.check import LogCheck, check
from bellief.decisions.collect import CollectionPlan, collect_next
from bellief.decisions.compare import PolicyComparison, compare
from bellief.decisions.improve import Improvement, improve
from bellief.decisions.sensitivity import Sensitivity, prior_sensitivity
from bellief.decisions.variance_split import VarianceSplit, variance_split

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
