"""Environments and agents that can be watched, without importing what runs them."""

from typing import Any

from bellief.registry import AGENTS, DISCRETE, ENVIRONMENTS

MOST_AGENTS, MOST_RUNS, MOST_STEPS = 4, 10, 1_000_000
# Seconds to wait at every checkpoint. The loop then does less between two of them, so that early steps can be seen.
PACES = {"slow": 0.25, "normal": 0.04, "fast": 0.0}


def choices() -> dict[str, Any]:
    """Those with countable states."""
    return {
        "environments": [
            {"name": one.name, "summary": one.summary} for one in ENVIRONMENTS.values() if DISCRETE in one.kinds
        ],
        "agents": [
            {"name": one.name, "summary": one.summary}
            for one in AGENTS.values()
            if DISCRETE in one.kinds and one.refusal is None
        ],
        "paces": list(PACES),
    }
