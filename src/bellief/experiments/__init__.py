"""Running agents in environments: the compiled loop and its results."""

from bellief.experiments.compare import AgentComparison, compare_agents
from bellief.experiments.results import RunResult
from bellief.experiments.run import run

__all__ = ["AgentComparison", "RunResult", "compare_agents", "run"]
