"""Checks that every agent must pass, ours and yours: `check_agent(my_agent)` in a test is all that is needed.

Each rule is a function of a `Trial` of its own and can be called alone: `check_resume(prepare(my_agent))`.
"""

from typing import Any

from bellief.envs import Environment
from bellief.testing.conduct import (
    check_extreme_rewards,
    check_jit,
    check_lanes,
    check_learning,
    check_repeats,
    check_resume,
    check_seeding,
    check_termination,
    check_traces,
)
from bellief.testing.form import check_actions, check_config, check_parts, check_policy, check_state
from bellief.testing.trial import AgentCheckError, Trial, prepare, small_config

__all__ = [
    "RULES",
    "AgentCheckError",
    "Trial",
    "check_actions",
    "check_agent",
    "check_config",
    "check_extreme_rewards",
    "check_jit",
    "check_lanes",
    "check_learning",
    "check_parts",
    "check_policy",
    "check_repeats",
    "check_resume",
    "check_seeding",
    "check_state",
    "check_termination",
    "check_traces",
    "prepare",
    "small_config",
]

# In this order: a rule may rely on what those before it have checked.
RULES = (
    check_parts,
    check_config,
    check_state,
    check_actions,
    check_repeats,
    check_policy,
    check_traces,
    check_jit,
    check_seeding,
    check_lanes,
    check_resume,
    check_learning,
    check_termination,
    check_extreme_rewards,
)


def check_agent(agent: Any, config: Any = None, environment: str | Environment | None = None) -> None:
    """Check an agent against the whole contract; `AgentCheckError` says in one sentence which rule it breaks first.

    Takes some seconds, nearly all of it for compiling the agent's functions.

    Args:
        agent: a registered name, or a module or other object with `Config, init, plan, act, update, policy`.
        config: its settings. By default `small_config(agent.Config)`: horizons, trees, networks and the like as small
            as possible, so that checking is cheap.
        environment: a registered name or an `Environment`. By default one with three states, two actions and episodes
            that end; in an environment without ends nothing is said about how the agent treats them.
    """
    trial = prepare(agent, config, environment)
    for rule in RULES:
        rule(trial)
