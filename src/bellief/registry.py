"""Names of everything that can be chosen by name. Holds strings only, so that listing them imports nothing heavy.

Other packages add agents by an entry point in the group `bellief.agents`. These are looked up only when a name that is
not ours is asked for or all names are listed, and even then the agent itself is not imported.
"""

import difflib
import functools
import importlib
import importlib.abc
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from bellief.errors import UserError, notify_once

AGENT_GROUP = "bellief.agents"
AGENT_PARTS = ("Config", "init", "plan", "act", "update", "policy")
VALUE_PARTS = ("fit", "sample", "mean", "sd")


DISCRETE, CONTINUOUS = "discrete", "continuous"
BOTH = (DISCRETE, CONTINUOUS)


class Entry(NamedTuple):
    """A name, where it lives (`module:attribute`, or `module` alone) and one line that says what it is.

    `package` is the other package that an agent comes from, `refusal` the reason why it cannot be had. `kinds` says
    which states it is for; an agent for both kinds has its part for continuous states at `continuous`.
    """

    name: str
    target: str
    summary: str
    package: str | None = None
    refusal: str | None = None
    kinds: tuple[str, ...] = (DISCRETE,)
    continuous: str | None = None

    def load(self) -> Any:
        """Import and return what the entry points to."""
        if self.refusal is not None:
            raise UserError(self.refusal)
        return self._import() if self.package is None else self._import_from_elsewhere(self.package)

    def load_for(self, kind: str, environment: str) -> Any:
        """The agent for states of a kind; `UserError` if it has none for an environment's."""
        if kind not in self.kinds:
            able = ", ".join(name for name, entry in AGENTS.items() if kind in entry.kinds)
            advice = ", or cut the states into bins (--bins)" if kind == CONTINUOUS and "-v" in environment else ""
            raise UserError(
                f"Agent '{self.name}' is for {self.kinds[0]} states and those of '{environment}' are {kind}: "
                f"choose one of {able}{advice}."
            )
        if kind == CONTINUOUS and self.continuous is not None:
            return self._replace(target=self.continuous).load()
        return self.load()

    def _import(self) -> Any:
        module, _, attribute = self.target.partition(":")
        loaded = importlib.import_module(module)
        return getattr(loaded, attribute) if attribute else loaded

    def _import_from_elsewhere(self, package: str) -> Any:
        """An error in another package becomes a `UserError` of one sentence."""
        try:
            agent = self._import()
        except UserError:  # already a sentence for the user, such as a missing extra
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ").rstrip(".")
            raise UserError(
                f"Agent '{self.name}' cannot be loaded ({reason}): update or uninstall package '{package}'."
            ) from error
        missing = [part for part in AGENT_PARTS if not hasattr(agent, part)]
        if missing:
            raise UserError(f"Agent '{self.name}' of package '{package}' is incomplete: it has no {missing[0]}.")
        return agent


class Agents(Mapping[str, Entry]):
    """Our agents, then those of other packages by name. Our names are found without looking for packages."""

    def __init__(self, own: tuple[Entry, ...]):
        self._own = {entry.name: entry for entry in own}

    def __getitem__(self, name: str) -> Entry:
        return self._own[name] if name in self._own else self._others()[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._others()))

    def __len__(self) -> int:
        return len(self._own) + len(self._others())

    def _others(self) -> dict[str, Entry]:
        # The search path is the key of the cache: what is on it does not change while a program runs.
        return _find_plugins(tuple(self._own), tuple(sys.path))


@functools.lru_cache(maxsize=8)
def _find_plugins(own: tuple[str, ...], search_path: tuple[str, ...]) -> dict[str, Entry]:
    """Agents of other packages. One that cannot be had by its name is listed as `package:name`, to say so."""
    from importlib.metadata import entry_points

    del search_path  # `entry_points` reads the same from `sys.path`
    offered: dict[str, list[tuple[str, str, str]]] = {}
    for point in entry_points(group=AGENT_GROUP):
        package = point.dist.name if point.dist is not None else "unknown"
        described = point.dist is not None and "Summary" in point.dist.metadata
        summary = point.dist.metadata["Summary"] if point.dist is not None and described else "an agent"
        target = point.value.partition("[")[0].strip()  # what follows are extras
        offered.setdefault(point.name, []).append((package, target, summary))
    found = {}
    for name, offers in sorted(offered.items()):
        for package, target, summary in sorted(offers):
            refusal = None
            if name in own:
                refusal = f"Package '{package}' offers an agent called '{name}', which is the name of one of Bellief's"
            elif len(offers) > 1:
                refusal = f"Package '{package}' is not the only one to offer an agent called '{name}'"
            if refusal is None:
                found[name] = Entry(name, target, f"{summary} (from {package})", package)
            else:
                listed = f"{package}:{name}"
                refusal = f"{refusal}: rename it, or uninstall '{package}'."
                found[listed] = Entry(listed, target, "cannot be used, because its name is taken", package, refusal)
    return found


ENVIRONMENTS = {
    entry.name: entry
    for entry in (
        Entry("nchain", "bellief.envs.nchain:nchain", "5-state chain: a small reward now, or a large one far away"),
        Entry("doubleloop", "bellief.envs.double_loop:double_loop", "9 states, two loops, one pays twice the other"),
        Entry("lavalake", "bellief.envs.lava_lake:lava_lake", "5x7 grid: a short way past lava, a long way around it"),
        Entry("lavalake10", "bellief.envs.lava_lake:lava_lake_10", "10x10 grid of the same kind (our layout)"),
        Entry("maze", "bellief.envs.maze:maze", "33 cells, three flags to collect: 264 states"),
        Entry("deep-sea", "bellief.envs.deep_sea:deep_sea", "a treasure that one of 2^10 ways leads to (any size)"),
        Entry("riverswim", "bellief.envs.river_swim:river_swim", "6 states: drift to 0.005, or swim upstream to 10"),
        Entry("rooms", "bellief.envs.rooms:rooms", "7 rooms in a row, episodes of 40 steps, the reward in the last"),
        Entry("grid5", "bellief.envs.corner_grid:grid5", "5x5 grid: walk to the far corner, again and again"),
        Entry("grid10", "bellief.envs.corner_grid:grid10", "10x10 grid of the same kind"),
        Entry("dearden-maze", "bellief.envs.dearden_maze:dearden_maze", "the maze with a step in its goal: 264 states"),
        Entry(
            "pendulum",
            "bellief.envs.pendulum:pendulum",
            "balance a pole by pushing its cart; 3 actions, 3,000 steps are a success",
            kinds=(CONTINUOUS,),
        ),
        Entry(
            "linear-model",
            "bellief.envs.linear_model:linear_model",
            "stay inside a ball in 4 dimensions by choosing one of 11 matrices; run n meets member n of a family",
            kinds=(CONTINUOUS,),
        ),
    )
}

AGENTS = Agents(
    (
        Entry(
            "bbi",
            "bellief.agents.bbi",
            "Bayesian backwards induction (ours): learns its prior, acts on mean + sd of values",
            kinds=BOTH,
            continuous="bellief.agents.continuous_bbi",
        ),
        Entry(
            "bbi-paper",
            "bellief.agents.bbi_sampled",
            "Bayesian Backwards Induction, the paper's Algorithm 3",
            kinds=BOTH,
            continuous="bellief.agents.continuous_bbi_paper",
        ),
        Entry(
            "psrl",
            "bellief.agents.psrl",
            "posterior sampling with a learned prior: solve one sampled MDP",
            kinds=BOTH,
            continuous="bellief.agents.continuous_psrl",
        ),
        Entry("psrl-paper", "bellief.agents.psrl_paper", "posterior sampling with the paper's prior and schedule"),
        Entry("ube", "bellief.agents.ube", "optimism by the exact uncertainty Bellman equation"),
        Entry("bamcp", "bellief.agents.bamcp", "Bayes-adaptive Monte-Carlo planning: a tree search at every step"),
        Entry("beb", "bellief.agents.beb", "Bayesian exploration bonus: the mean MDP, plus beta / (1 + visits)"),
        Entry("rlsvi", "bellief.agents.rlsvi", "randomised least-squares value iteration"),
        Entry("mmbi", "bellief.agents.mmbi", "multi-MDP backwards induction: one policy for ten sampled MDPs"),
        Entry("bss", "bellief.agents.bss", "Bayesian sparse sampling: a small belief tree at every step"),
        Entry("bql", "bellief.agents.bql", "Bayesian Q-learning: NormalGamma beliefs about returns"),
        Entry(
            "vdqn",
            "bellief.agents.vdqn",
            "variational deep Q-network",
            kinds=BOTH,
            continuous="bellief.agents.continuous_vdqn",
        ),
        Entry("gptd", "bellief.agents.gptd", "Gaussian-process temporal differences", kinds=(CONTINUOUS,)),
        Entry("q-learning", "bellief.agents.q_learning", "epsilon-greedy Q-learning, the floor of a comparison"),
        Entry("oracle", "bellief.agents.oracle", "the optimal policy of the true model, the ceiling of a comparison"),
    )
)

VALUES = {
    entry.name: entry
    for entry in (
        Entry("gaussian", "bellief.values.gaussian", "one Gaussian over value functions (the paper's choice)"),
        Entry("histogram", "bellief.values.histogram", "one histogram per state (marginals only)"),
        Entry("joint", "bellief.values.joint", "a Gaussian per sampled MDP, kept with that MDP (ours)"),
    )
}
# Method 1 refits a value belief in every step. `joint` is never refitted: its steps are exact.
METHOD1_VALUES = tuple(name for name in VALUES if name != "joint")
# Methods of `evaluate`.
METHODS = ("joint", "moments", "bootstrap", *METHOD1_VALUES, "method2", "method3", "monte-carlo", "mean-mdp")


def value_belief(name: str) -> ModuleType:
    """The module of a value belief; an error where it lacks a function that Method 1 needs.

    >>> from bellief import registry
    >>> registry.value_belief("histogram").__name__
    'bellief.values.histogram'
    """
    module = VALUES[name].load()
    missing = [part for part in VALUE_PARTS if not hasattr(module, part)]
    if missing:
        raise UserError(f"The value belief '{name}' ({module.__name__}) has no {', '.join(missing)}.")
    return module


def find(entries: Mapping[str, Entry], kind: str, name: str) -> Entry:
    """The entry called `name`, or a `UserError` that suggests the nearest names."""
    if name in entries:
        return entries[name]
    near = difflib.get_close_matches(name, entries, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(entries)}."
    raise UserError(f"There is no {kind} called '{name}': {hint}")


# Version 0.1 called the paper's agents by the short names. Random numbers, cells of sweeps and saved agents go by the
# names of that version still, so that what it computed can be read, continued and repeated.
FORMER_NAMES = {"bbi-paper": "bbi", "psrl-paper": "psrl"}
NEW_MEANINGS = {
    "bbi": "'bbi' now learns its prior and decides when to plan; the agent that version 0.1 called 'bbi', the paper's, "
    "is 'bbi-paper'.",
    "psrl": "'psrl' now learns its prior and decides when to plan; the agent that version 0.1 called 'psrl' is "
    "'psrl-paper'.",
}


def stored_name(name: str, kind: str) -> tuple[int, str]:
    """Generation and name that files know an agent by. Names of generation 1 mean what they meant in version 0.1.

    >>> from bellief.registry import restored_name, stored_name
    >>> [stored_name(name, "discrete") for name in ("bbi-paper", "bbi", "mmbi")]
    [(1, 'bbi'), (2, 'bbi'), (1, 'mmbi')]
    >>> [restored_name(generation, "bbi", "discrete") for generation in (1, 2)]
    ['bbi-paper', 'bbi']
    >>> stored_name("bbi", "continuous")
    (1, 'bbi')
    """
    return (2 if kind == DISCRETE and name in NEW_MEANINGS else 1), FORMER_NAMES.get(name, name)


def restored_name(generation: int, name: str, kind: str) -> str:
    """The agent that a file's generation and name mean."""
    if generation > 1 or kind != DISCRETE:
        return name
    return {former: now for now, former in FORMER_NAMES.items()}.get(name, name)


def announce(name: str, kind: str) -> None:
    """Say once in a process that a name has another meaning than in version 0.1."""
    if kind == DISCRETE and name in NEW_MEANINGS:
        notify_once(NEW_MEANINGS[name])


def looks_like_gymnasium(name: str) -> bool:
    """Whether an environment's name is not registered but has the form of a Gymnasium id, such as FrozenLake-v1."""
    return name not in ENVIRONMENTS and re.search(r"-v\d+$", name) is not None


GYMNASIUM_IDS = {
    "NChain-v0": "nchain",
    "DoubleLoop-v0": "doubleloop",
    "LavaLake-v0": "lavalake",
    "LavaLake10-v0": "lavalake10",
    "Maze-v0": "maze",
}
# Not InvertedPendulum-v0: Gymnasium has another environment of that name.
BOX_GYMNASIUM_IDS = {"BelliefPendulum-v0": "pendulum", "LinearModel-v0": "linear-model"}


def register_with_gymnasium() -> None:
    """Make our environments known to Gymnasium: now, or as soon as it is imported. Harmless to call again."""
    if sys.modules.get("gymnasium") is not None:
        _register(sys.modules["gymnasium"])
    elif not any(isinstance(finder, _AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium(importlib.abc.MetaPathFinder):
    """Waits for the import of Gymnasium, which commands about logs do not need and would pay 0.05 s for."""

    searching = False

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != "gymnasium" or self.searching:
            return None
        # The other finders are asked. This one stays: whoever looks for a module need not import it.
        self.searching = True
        try:
            found = importlib.util.find_spec(fullname)
        finally:
            self.searching = False
        if found is not None and found.loader is not None:
            run: Any = found.loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                _register(module)

            found.loader.exec_module = exec_module  # type: ignore[method-assign]
        return found


def _register(gymnasium: Any) -> None:
    for identifier, name in (GYMNASIUM_IDS | BOX_GYMNASIUM_IDS).items():
        kind = "Box" if identifier in BOX_GYMNASIUM_IDS else "Tabular"
        if identifier not in gymnasium.registry:
            gymnasium.register(
                id=identifier, entry_point=f"bellief.envs.gymnasium:{kind}GymnasiumEnv", kwargs={"name": name}
            )
