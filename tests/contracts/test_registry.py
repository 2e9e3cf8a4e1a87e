"""Every agent in the registry keeps the contract."""

import pytest

from bellief.registry import AGENTS, DISCRETE
from bellief.testing import RULES, check_agent, prepare

pytestmark = pytest.mark.long

COUNTING = [name for name, entry in AGENTS.items() if DISCRETE in entry.kinds]
# Agents whose plans take many seconds to compile.
SLOW = ("bbi", "psrl", "ube")
MARKED = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in COUNTING]


@pytest.mark.parametrize("name", MARKED)
def test_agent_keeps_the_contract(name):
    trial = prepare(name)
    for rule in RULES:
        rule(trial)


# Variants that compile to other programs than the default settings.
VARIANTS = [
    ("bbi-paper", {"rule": "optimistic", "mdps": 2, "horizon": 3}),
    ("bss", {"growth": "thompson", "next_states": 2}),
    ("bql", {"update_rule": "mixture", "selection": "vpi", "return_samples": 4}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_variant_keeps_the_contract(name, settings):
    check_agent(name, AGENTS[name].load().Config(**settings))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COUNTING if name != "oracle"])
def test_agent_keeps_the_contract_with_its_defaults(name):
    check_agent(name, AGENTS[name].load().Config(), environment="nchain")
