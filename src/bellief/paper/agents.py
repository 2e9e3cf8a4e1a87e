"""The agents of the paper's items: the label in a figure, the agent's name in Bellief, its settings. The one place that
has to change when an agent is renamed.

Where the paper leaves a setting open on which a verdict depends, all members of a declared set are run
(`BQL_VARIANTS`, `VDQN_PACES`, `GPTD_PACES`, `STATE_DISTRIBUTIONS`, `LINEAR_FEATURES`), and a claim on which they
disagree is under-specified.
"""

from typing import Any

Entry = dict[str, Any]

# The names in Bellief, each once.
_BBI, _PSRL, _MMBI, _BQL, _VDQN, _BSS, _GPTD = "bbi-paper", "psrl-paper", "mmbi", "bql", "vdqn", "bss", "gptd"
_Q_LEARNING, _ORACLE = "q-learning", "oracle"
# Ours beside it: on tables the same sampled MDPs, under the paper's prior, with the optimistic rule.
_OURS: Entry = {"rule": "optimistic"}
_OURS_CONTINUOUS = "bbi"

OURS = "BBI (ours)"
HORIZONS = (10, 20, 50, 100)


def _entry(name: str, settings: Entry | None = None, **more: Any) -> Entry:
    together = {**(settings or {}), **more}
    return {"name": name, "settings": together} if together else {"name": name}


# "Each algorithm updates its policy at steps t = 1, 3, 6, 10, ...", which agents that learn without planning can follow
# in three ways (see `bellief.agents.pace`). The first of each is what the bare name stands for.
_POLICY, _LEARNING = "scheduled-policy", "scheduled-learning"
VDQN_PACES: dict[str, Entry] = {
    "VDQN": _entry(_VDQN),
    "VDQN, scheduled policy": _entry(_VDQN, pace=_POLICY),
    "VDQN, scheduled learning": _entry(_VDQN, pace=_LEARNING),
}
GPTD_PACES: dict[str, Entry] = {"GPTD": _entry(_GPTD), "GPTD, every step": _entry(_GPTD, pace="every-step")}
# Neither the update nor the selection of Bayesian Q-learning is printed; "BQL" is the first pair.
_BQL_PAIRS: dict[str, Entry] = {
    "BQL": {},
    "BQL, moment and VPI": {"selection": "vpi"},
    "BQL, mixture and sampling": {"update_rule": "mixture"},
    "BQL, mixture and VPI": {"update_rule": "mixture", "selection": "vpi"},
}
BQL_VARIANTS: dict[str, Entry] = {
    **{label: _entry(_BQL, settings) for label, settings in _BQL_PAIRS.items()},
    **{f"{label}, scheduled policy": _entry(_BQL, settings, pace=_POLICY) for label, settings in _BQL_PAIRS.items()},
}
# What the paper prints comes first, ours next, then a floor and a ceiling.
DISCRETE: dict[str, Entry] = {
    "BBI": _entry(_BBI),
    "PSRL": _entry(_PSRL),
    "MMBI": _entry(_MMBI),
    "BQL": BQL_VARIANTS["BQL"],
    "VDQN": _entry(_VDQN),
    "BSS": _entry(_BSS),
    OURS: _entry(_BBI, _OURS),
    "Q-learning": _entry(_Q_LEARNING),
    "optimal": _entry(_ORACLE),
}
CONTINUOUS: dict[str, Entry] = {
    "BBI": _entry(_BBI),
    **GPTD_PACES,
    **VDQN_PACES,
    OURS: _entry(_OURS_CONTINUOUS),
}
# "We experimented with a few options" for q(s): states from the history, from the start, from the whole box. Shares of
# the three; "BBI" is half history, half box.
STATE_DISTRIBUTIONS: dict[str, Entry] = {
    "BBI": CONTINUOUS["BBI"],
    "BBI, q = history": _entry(_BBI, history=1.0, support=0.0),
    "BBI, q = history and start": _entry(_BBI, history=0.5, start=0.5, support=0.0),
    "BBI, q = box": _entry(_BBI, history=0.0, support=1.0),
}
# The features of the value on LinearModel: the state itself, as the formula has it, or products of up to two of its
# coordinates ("in practice, we often use a feature map"). GPTD has the same ones.
_QUADRATIC = "constant+poly:2"
LINEAR_FEATURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "raw state": ("BBI", ("GPTD", "GPTD, every step")),
    "quadratic": ("BBI, quadratic", ("GPTD, quadratic", "GPTD, quadratic, every step")),
}
LINEAR: dict[str, Entry] = {
    **CONTINUOUS,
    "BBI, quadratic": _entry(_BBI, value_features=_QUADRATIC),
    "GPTD, quadratic": _entry(_GPTD, features=_QUADRATIC),
    "GPTD, quadratic, every step": _entry(_GPTD, features=_QUADRATIC, pace="every-step"),
}
PENDULUM: dict[str, Entry] = {**CONTINUOUS, **STATE_DISTRIBUTIONS}

HORIZON_AGENTS: dict[str, Entry] = {
    **{f"BBI, H = {horizon}": _entry(_BBI, horizon=horizon) for horizon in HORIZONS},
    **{f"{OURS}, H = {horizon}": _entry(_BBI, _OURS, horizon=horizon) for horizon in (10, 100)},
}
# The paper's rollout formulas 1, 2 and 3; its results use the third.
ROLLOUTS = {"sampled": "formula 1", "expected": "formula 2", "values": "formula 3"}
ROLLOUT_AGENTS: dict[str, Entry] = {f"BBI, {text}": _entry(_BBI, utilities=name) for name, text in ROLLOUTS.items()}


def with_variants(agents: dict[str, Entry]) -> dict[str, Entry]:
    """A task's agents with every variant of Bayesian Q-learning and of VDQN beside it.

    >>> from bellief.paper.agents import DISCRETE, with_variants
    >>> len(with_variants(DISCRETE)) - len(DISCRETE)
    9
    """
    sets = {"BQL": BQL_VARIANTS, "VDQN": VDQN_PACES}
    return {label: entry for place in agents for label, entry in sets.get(place, {place: agents[place]}).items()}
