"""Policies in all accepted forms: `uniform`, `behaviour`, `always:ACTION`, a file, an array, a dictionary."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bellief.errors import UserError
from bellief.files import restore
from bellief.logs.labels import find, label_text, name_of, shown
from bellief.policies import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

ALWAYS = "always:"


def read_policy(policy: Any, data: Any) -> Float[np.ndarray, "S A"]:
    """Action probabilities for a log (or its statistics) from any accepted form of a policy."""
    if isinstance(policy, str) and policy == "uniform":
        return np.full((data.states, data.actions), 1 / data.actions)
    if isinstance(policy, str) and policy == "behaviour":
        return data.behaviour()
    if isinstance(policy, str) and policy.startswith(ALWAYS):
        action = find("action", policy.removeprefix(ALWAYS), data.actions, data.action_labels)
        return np.tile(np.eye(data.actions)[action], (data.states, 1))
    if isinstance(policy, str | Path):
        return _from_file(Path(policy), data)
    if isinstance(policy, Mapping):
        return _from_mapping(policy, data)
    return _from_array(np.asarray(policy), data)


def _from_mapping(policy: Mapping, data: Any) -> Float[np.ndarray, "S A"]:
    table = np.zeros((data.states, data.actions))
    for state, choice in policy.items():
        row = find("state", state, data.states, data.state_labels)
        chances = choice if isinstance(choice, Mapping) else {choice: 1.0}
        for action, probability in chances.items():
            table[row, find("action", action, data.actions, data.action_labels)] += probability
    _fill(table, data)
    _check(table, "The policy", data)
    return table


def _from_array(policy: np.ndarray, data: Any) -> Float[np.ndarray, "S A"]:
    if policy.ndim == 1 and len(policy) == data.states and policy.dtype.kind in "USO":
        chosen = [find("action", action, data.actions, data.action_labels) for action in policy]
        return np.eye(data.actions)[chosen]
    if policy.ndim == 1 and len(policy) == data.states and np.issubdtype(policy.dtype, np.integer):
        if policy.min() < 0 or policy.max() >= data.actions:
            state = int(np.flatnonzero((policy < 0) | (policy >= data.actions))[0])
            raise UserError(
                f"The policy takes action {policy[state]} in state {state}, but actions run from 0 to "
                f"{data.actions - 1}."
            )
        return np.eye(data.actions)[policy]
    if policy.shape != (data.states, data.actions):
        raise UserError(
            f"A policy needs the shape ({data.states}, {data.actions}), one probability per state and action, or one "
            f"action per state; this one has the shape {policy.shape}."
        )
    policy = policy.astype(np.float64)
    _fill(policy, data)
    _check(policy, "The policy", data)
    return policy


def _from_file(path: Path, data: Any) -> Float[np.ndarray, "S A"]:
    if not os.path.exists(path):
        raise UserError(
            f"There is no policy '{path}': give uniform, behaviour, always:ACTION, or the path of a CSV file."
        )
    from bellief.logs.tables import read_table, to_numbers

    frame = read_table(path, COLUMNS)
    if len(frame) == 0:
        raise UserError(f"{path}: there are no rows; give one for each state and action that the policy may take.")
    state = _indices(frame, "state", data.states, data.state_labels, path)
    action = _indices(frame, "action", data.actions, data.action_labels, path)
    probability = to_numbers(frame["probability"])
    with np.errstate(invalid="ignore"):
        bad = ~((probability >= 0) & (probability <= 1 + 1e-9))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        cell = shown(frame["probability"].iloc[row])
        raise UserError(f"{path}: row {row + 1} has probability '{cell}'; it must lie between 0 and 1.")
    pair = state * data.actions + action
    once = np.unique(pair, return_index=True)[1]
    if len(once) < len(pair):
        row = int(np.setdiff1d(np.arange(len(pair)), once)[0])
        names = name_of(state[row], data.state_labels), name_of(action[row], data.action_labels)
        raise UserError(f"{path}: row {row + 1} repeats state {names[0]}, action {names[1]}; keep one of them.")
    policy = np.zeros((data.states, data.actions))
    policy[state, action] = probability
    _fill(policy, data)
    _check(policy, f"{path}: the policy", data)
    return policy


def _indices(frame: "pd.DataFrame", column: str, size: int, labels, path: Path) -> np.ndarray:
    from bellief.logs.tables import to_numbers

    if labels is None:
        values = to_numbers(frame[column])
        with np.errstate(invalid="ignore"):
            bad = ~((values >= 0) & (values < size) & (values == np.floor(values)))
        allowed = f"{column}s run from 0 to {size - 1}; correct the row, or announce more with --{column}s"
    else:
        known = {label: number for number, label in enumerate(labels)}
        texts = [label_text(cell) or "" for cell in frame[column]]
        # `save_policy` neutralises labels that a spreadsheet would run.
        values = np.array([known.get(restore(text), known.get(text, -1)) for text in texts])
        bad = values < 0
        allowed = f"the data have no such {column}; correct the row, or list all labels with --{column}s"
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise UserError(f"{path}: row {row + 1} has {column} '{shown(frame[column].iloc[row])}', but {allowed}.")
    return values.astype(np.int64)


def _fill(policy: np.ndarray, data: Any) -> None:
    """A policy may leave out states without actions; it is uniform there, which changes no value."""
    policy[~data.statistics().acting & (policy == 0).all(-1)] = 1 / data.actions


def _check(policy: np.ndarray, subject: str, data: Any) -> None:
    sums = policy.sum(-1)
    with np.errstate(invalid="ignore"):
        bad = ~(np.isclose(sums, 1, atol=1e-6) & (policy >= 0).all(-1))
    if bad.any():
        state = int(np.flatnonzero(bad)[0])
        raise UserError(
            f"{subject}'s probabilities in state {name_of(state, data.state_labels)} sum to {sums[state]:.6g}; make "
            "them non-negative with sum 1."
        )
