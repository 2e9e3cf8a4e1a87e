"""Names of everything that can be chosen by name. Holds strings only, so that listing them imports nothing heavy."""

import difflib
import importlib
import re
from typing import Any, NamedTuple

from bellief.errors import UserError


class Entry(NamedTuple):
    """A name, where it lives (`module:attribute`, or `module` alone) and one line that says what it is."""

    name: str
    target: str
    summary: str

    def load(self) -> Any:
        """Import and return what the entry points to."""
        module, _, attribute = self.target.partition(":")
        loaded = importlib.import_module(module)
        return getattr(loaded, attribute) if attribute else loaded


ENVIRONMENTS = {
    entry.name: entry
    for entry in (
        Entry("nchain", "bellief.envs.nchain:nchain", "5-state chain: a small reward now, or a large one far away"),
        Entry("doubleloop", "bellief.envs.double_loop:double_loop", "9 states, two loops, one pays twice the other"),
        Entry("lavalake", "bellief.envs.lava_lake:lava_lake", "5x7 grid: a short way past lava, a long way around it"),
        Entry("lavalake10", "bellief.envs.lava_lake:lava_lake_10", "10x10 grid of the same kind (our layout)"),
        Entry("maze", "bellief.envs.maze:maze", "33 cells, three flags to collect: 264 states"),
    )
}

AGENTS = {
    entry.name: entry
    for entry in (
        Entry("bbi", "bellief.agents.bbi", "Bayesian Backwards Induction, the paper's Algorithm 3"),
        Entry("psrl", "bellief.agents.psrl", "posterior sampling: solve one sampled MDP"),
        Entry("mmbi", "bellief.agents.mmbi", "multi-MDP backwards induction: one policy for ten sampled MDPs"),
        Entry("bss", "bellief.agents.bss", "Bayesian sparse sampling: a small belief tree at every step"),
        Entry("bql", "bellief.agents.bql", "Bayesian Q-learning: NormalGamma beliefs about returns"),
        Entry("vdqn", "bellief.agents.vdqn", "variational deep Q-network"),
        Entry("q-learning", "bellief.agents.q_learning", "epsilon-greedy Q-learning, the floor of a comparison"),
        Entry("oracle", "bellief.agents.oracle", "the optimal policy of the true model, the ceiling of a comparison"),
    )
}

VALUES = {
    entry.name: entry
    for entry in (
        Entry("gaussian", "bellief.values.gaussian", "one Gaussian over value functions (the paper's choice)"),
        Entry("histogram", "bellief.values.histogram", "one histogram per state (marginals only)"),
        Entry("joint", "bellief.values.joint", "a Gaussian per sampled MDP, kept with that MDP (ours)"),
    )
}


def find(entries: dict[str, Entry], kind: str, name: str) -> Entry:
    """The entry called `name`, or a `UserError` that suggests the nearest names."""
    if name in entries:
        return entries[name]
    near = difflib.get_close_matches(name, entries, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(entries)}."
    raise UserError(f"There is no {kind} called '{name}': {hint}")


def looks_like_gymnasium(name: str) -> bool:
    """Whether an environment's name is none of ours but has the form of a Gymnasium id, such as FrozenLake-v1."""
    return name not in ENVIRONMENTS and re.search(r"-v\d+$", name) is not None


GYMNASIUM_IDS = {
    "NChain-v0": "nchain",
    "DoubleLoop-v0": "doubleloop",
    "LavaLake-v0": "lavalake",
    "LavaLake10-v0": "lavalake10",
    "Maze-v0": "maze",
}


def register_with_gymnasium() -> None:
    """Make our environments known to Gymnasium where it is installed; harmless to call again."""
    try:
        import gymnasium
    except ImportError:  # a machine that only computes need not have it
        return
    for identifier, name in GYMNASIUM_IDS.items():
        if identifier not in gymnasium.registry:
            gymnasium.register(
                id=identifier, entry_point="bellief.envs.gymnasium:TabularGymnasiumEnv", kwargs={"name": name}
            )
