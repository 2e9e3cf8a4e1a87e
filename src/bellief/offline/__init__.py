"""Logged data in, value posteriors out."""

from bellief.offline.evaluate import evaluate
from bellief.offline.posterior import ValuePosterior
from bellief.offline.transitions import Transitions

__all__ = ["Transitions", "ValuePosterior", "evaluate"]
