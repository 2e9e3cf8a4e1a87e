"""Running agents in environments: the compiled loop and its results."""

from bellief.experiments.results import RunResult
from bellief.experiments.run import run

__all__ = ["RunResult", "run"]
