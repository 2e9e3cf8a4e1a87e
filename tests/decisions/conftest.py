"""The small log of the tests of evaluation."""

from evaluation.conftest import data, ending_log, log, numpy_posterior, policy

__all__ = ["data", "ending_log", "log", "numpy_posterior", "policy"]
