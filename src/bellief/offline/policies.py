"""Policies as people name them: `uniform`, `behaviour`, a file, an array."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from bellief.errors import UserError
from bellief.offline.tables import read_table, shown, to_numbers
from bellief.offline.transitions import Transitions
from bellief.policies import COLUMNS


def read_policy(policy: Any, data: Transitions) -> Float[np.ndarray, "S A"]:
    """Action probabilities from a name, the path of a CSV file, an array [S, A], or one action per state [S]."""
    if isinstance(policy, str) and policy == "uniform":
        return np.full((data.states, data.actions), 1 / data.actions)
    if isinstance(policy, str) and policy == "behaviour":
        return data.behaviour()
    if isinstance(policy, str | Path):
        return _from_file(Path(policy), data)
    return _from_array(np.asarray(policy), data)


def _from_array(policy: np.ndarray, data: Transitions) -> Float[np.ndarray, "S A"]:
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
    _check(policy, "The policy")
    return policy


def _from_file(path: Path, data: Transitions) -> Float[np.ndarray, "S A"]:
    if not os.path.exists(path):
        raise UserError(f"There is no policy '{path}': give uniform, behaviour, or the path of a CSV file.")
    frame = read_table(path, COLUMNS)
    if len(frame) == 0:
        raise UserError(f"{path}: there are no rows; give one for each state and action that the policy may take.")
    numbers = {name: to_numbers(frame[name]) for name in COLUMNS}
    for name, size in (("state", data.states), ("action", data.actions)):
        values = numbers[name]
        with np.errstate(invalid="ignore"):
            bad = ~((values >= 0) & (values < size) & (values == np.floor(values)))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            cell = shown(frame[name].iloc[row])
            raise UserError(
                f"{path}: row {row + 1} has {name} '{cell}', but {name}s run from 0 to {size - 1}; "
                f"correct the row, or announce more with --{name}s."
            )
    with np.errstate(invalid="ignore"):
        bad = ~((numbers["probability"] >= 0) & (numbers["probability"] <= 1 + 1e-9))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        cell = shown(frame["probability"].iloc[row])
        raise UserError(f"{path}: row {row + 1} has probability '{cell}'; it must lie between 0 and 1.")
    state, action = numbers["state"].astype(int), numbers["action"].astype(int)
    pairs = pd.Series(list(zip(state, action, strict=True)))
    if pairs.duplicated().any():
        row = int(np.flatnonzero(pairs.duplicated())[0])
        raise UserError(f"{path}: row {row + 1} repeats state {state[row]}, action {action[row]}; keep one of them.")
    policy = np.zeros((data.states, data.actions))
    policy[state, action] = numbers["probability"]
    _check(policy, f"{path}: the policy")
    return policy


def _check(policy: np.ndarray, subject: str) -> None:
    sums = policy.sum(-1)
    with np.errstate(invalid="ignore"):
        bad = ~(np.isclose(sums, 1, atol=1e-6) & (policy >= 0).all(-1))
    if bad.any():
        state = int(np.flatnonzero(bad)[0])
        raise UserError(
            f"{subject}'s probabilities in state {state} sum to {sums[state]:.6g}; make them non-negative with sum 1."
        )
