"""Policies where states are vectors: a function, a table of weights, or a name.

>>> import jax.numpy as jnp
>>> from bellief.evaluation import feature_policies
>>> weights = jnp.array([[0.0, 1.0], [0.0, -1.0]])  # a constant and one feature for each of two actions
>>> feature_policies.greedy(weights, jnp.array([0.5])).tolist()
[1.0, 0.0]
>>> bool(feature_policies.softmax(weights, jnp.array([0.5]))[0] > 0.5)
True
>>> feature_policies.squared_softmax(jnp.zeros((2, 3)), jnp.array([0.5])).tolist()
[0.5, 0.5]
>>> policy = feature_policies.FeaturePolicy(feature_policies.softmax, weights)
>>> policy.choose(policy.weights, jnp.array([0.0])).tolist()
[0.5, 0.5]
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import optimize, special

from bellief.errors import UserError
from bellief.evaluation.policy_forms import ALWAYS
from bellief.logs.feature_log import FeatureTransitions
from bellief.logs.labels import find, name_of, shown
from bellief.logs.tables import check_columns, read_table, to_numbers

GREEDY = "greedy:"
# Stands for the logarithm of zero.
NEVER = -1e30
# Of the behaviour that is estimated: variance of its weights under the prior, and steps that are looked at.
WEIGHT_VARIANCE, MOST_STEPS = 100.0, 20_000


class FeaturePolicy(NamedTuple):
    """`choose(weights, state)` gives action probabilities; compiled once for every `choose`, for any weights."""

    choose: Callable[[Array, Float[Array, "D"]], Float[Array, "A"]]
    weights: Any
    note: str | None = None


def softmax(weights: Float[Array, "A D+1"], state: Float[Array, "D"]) -> Float[Array, "A"]:
    """Probabilities proportional to exp(weights[0] + weights[1:] . state)."""
    return jax.nn.softmax(weights[:, 0] + weights[:, 1:] @ state)


def greedy(weights: Float[Array, "A D+1"], state: Float[Array, "D"]) -> Float[Array, "A"]:
    """The action of the highest score; the first of several."""
    scores = weights[:, 0] + weights[:, 1:] @ state
    return (jnp.arange(len(scores)) == jnp.argmax(scores)).astype(state.dtype)


def squared_softmax(weights: Float[Array, "A 2*D+1"], state: Float[Array, "D"]) -> Float[Array, "A"]:
    """The same with squares of the features after the features."""
    return softmax(weights, jnp.concatenate([state, state**2]))


def read_feature_policy(policy: Any, log: FeatureTransitions) -> FeaturePolicy:
    """A policy from any accepted form."""
    dimension = log.state.shape[1]
    if callable(policy):
        return _from_function(policy, log)
    if isinstance(policy, str) and policy == "uniform":
        return FeaturePolicy(softmax, np.zeros((log.actions, dimension + 1)))
    if isinstance(policy, str) and policy == "behaviour":
        return _behaviour(log)
    if isinstance(policy, str) and policy.startswith(ALWAYS):
        action = find("action", policy.removeprefix(ALWAYS), log.actions, log.action_labels)
        weights = np.zeros((log.actions, dimension + 1))
        weights[:, 0] = np.where(np.arange(log.actions) == action, 0, NEVER)
        return FeaturePolicy(softmax, weights)
    if isinstance(policy, str | Path):
        text = str(policy)
        chosen = greedy if text.startswith(GREEDY) else softmax
        return FeaturePolicy(chosen, _from_file(Path(text.removeprefix(GREEDY)), log))
    weights = np.asarray(policy)
    if weights.shape != (log.actions, dimension + 1) or not np.isfinite(weights.astype(float)).all():
        raise UserError(
            f"A softmax policy needs finite weights of the shape {(log.actions, dimension + 1)}: for each action a "
            f"constant and one number for each feature. This one has the shape {weights.shape}."
        )
    return FeaturePolicy(softmax, weights.astype(float))


def _from_file(path: Path, log: FeatureTransitions) -> Float[np.ndarray, "A D+1"]:
    """A CSV file with a row for each action: action, constant, and a weight for each feature."""
    if not path.exists():
        raise UserError(
            f"There is no policy '{path}': give uniform, behaviour, always:ACTION, or the path of a CSV file with "
            "weights (greedy:FILE for the highest score)."
        )
    columns = ("action", "constant", *log.feature_names)
    frame = read_table(path, columns)
    check_columns(frame, columns, f"{path}: ")
    weights = np.full((log.actions, len(columns) - 1), np.nan)
    for row, cell in enumerate(frame["action"]):
        try:
            action = find("action", cell, log.actions, log.action_labels)
        except UserError:
            raise UserError(f"{path}: row {row + 1} has action '{shown(cell)}', which the data do not know.") from None
        if np.isfinite(weights[action, 0]):
            raise UserError(f"{path}: row {row + 1} repeats action {shown(cell)}; keep one of them.")
        for place, name in enumerate(columns[1:]):
            weights[action, place] = number = to_numbers(frame[name].iloc[[row]])[0]
            if not np.isfinite(number):
                raise UserError(
                    f"{path}: row {row + 1} has {name} '{shown(frame[name].iloc[row])}'; it must be a finite number."
                )
    missing = np.flatnonzero(np.isnan(weights[:, 0]))
    if len(missing):
        raise UserError(f"{path}: there is no row for action {name_of(int(missing[0]), log.action_labels)}; add one.")
    return weights


def _from_function(policy: Callable, log: FeatureTransitions) -> FeaturePolicy:
    """A function of one state that gives probabilities or the number of an action.

    Functions that JAX cannot trace, because they use NumPy or branch on numbers, are called state by state.
    """
    check_function(policy, log)

    def as_probabilities(answer) -> Array:
        answer = jnp.asarray(answer)
        if answer.ndim == 0:
            return (jnp.arange(log.actions) == answer).astype(jnp.result_type(float))
        return answer.astype(jnp.result_type(float))

    def traced(_, state):
        return as_probabilities(policy(state))

    def called(_, state):
        def one(now):
            answer = np.asarray(policy(np.asarray(now, float)))
            return np.asarray(np.eye(log.actions)[int(answer)] if answer.ndim == 0 else answer, np.float32)

        # A callback returns single precision, also where the caller uses double precision.
        shape = jax.ShapeDtypeStruct((log.actions,), jnp.float32)
        return jax.pure_callback(one, shape, state, vmap_method="sequential").astype(state.dtype)

    try:
        jax.eval_shape(traced, None, jax.ShapeDtypeStruct((log.state.shape[1],), jnp.result_type(float)))
    except Exception:  # any error that a NumPy function raises for a tracer
        return FeaturePolicy(called, None)
    return FeaturePolicy(traced, None)


def check_function(policy: Callable, log: FeatureTransitions) -> None:
    """Try a function on some states of the log: probabilities must be non-negative with sum 1, actions known."""
    for row in np.unique(np.linspace(0, len(log) - 1, 10).astype(int)):
        answer = np.asarray(policy(log.state[row]))
        if answer.ndim == 0:
            right = float(answer) in range(log.actions)
        else:
            right = answer.shape == (log.actions,) and bool((answer >= 0).all() and abs(answer.sum() - 1) < 1e-4)
        if not right:
            raise UserError(
                f"In the state of row {row + 1} the policy gives {shown(answer)}; it must give {log.actions} "
                f"non-negative probabilities with sum 1, or an action from 0 to {log.actions - 1}."
            )


def _behaviour(log: FeatureTransitions) -> FeaturePolicy:
    """What the log did: softmax regression of its actions on the features and their squares."""
    rows = np.unique(np.linspace(0, len(log) - 1, min(len(log), MOST_STEPS)).astype(int))
    state, action = log.state[rows], log.action[rows]
    location, scale = state.mean(0), np.where(state.std(0) > 0, state.std(0), 1.0)
    unit = (state - location) / scale
    design = np.concatenate([np.ones((len(rows), 1)), unit, unit**2], axis=1)
    chosen = np.eye(log.actions)[action]

    def loss(flat):
        weights = flat.reshape(log.actions, -1)
        scores = design @ weights.T
        chance = special.softmax(scores, axis=1)
        value = (special.logsumexp(scores, axis=1) - (scores * chosen).sum(1)).sum()
        slope = (chance - chosen).T @ design + weights / WEIGHT_VARIANCE
        return value + (weights**2).sum() / (2 * WEIGHT_VARIANCE), slope.ravel()

    found = optimize.minimize(loss, np.zeros(log.actions * design.shape[1]), jac=True, method="L-BFGS-B")
    # Written for features as they are, not in units.
    constant, line, square = np.split(found.x.reshape(log.actions, -1), [1, 1 + unit.shape[1]], axis=1)
    moved = line / scale - 2 * square * location / scale**2
    free = constant[:, 0] - line @ (location / scale) + square @ (location / scale) ** 2
    weights = np.concatenate([free[:, None], moved, square / scale**2], axis=1)
    note = "The log's own policy is estimated: a softmax in the features and their squares, taken as if it were known."
    return FeaturePolicy(squared_softmax, weights, note)
