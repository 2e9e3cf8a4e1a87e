"""Rules about the form of an agent: its parts, its settings, the shapes of its state, its actions and its policy."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bellief.registry import AGENT_PARTS
from bellief.testing.programs import read_program
from bellief.testing.trial import Trial, key, named_leaves, same_structure, transition


def check_parts(trial: Trial) -> None:
    """All parts are there, the agent can be a static argument of `jit`, and `plan_steps` names steps of the run."""
    for part in AGENT_PARTS:
        if not callable(getattr(trial.agent, part, None)):
            raise trial.fail(f"it has no `{part}`; an agent needs {', '.join(AGENT_PARTS)}")
    try:
        hash(trial.agent)
    except TypeError as error:
        raise trial.fail("it cannot be hashed, and so cannot be an argument of a compiled loop") from error
    if hasattr(trial.agent, "plan_steps"):
        steps = list(trial.agent.plan_steps(50))
        if steps != sorted(set(steps)) or not all(isinstance(step, int) and 1 <= step <= 50 for step in steps):
            raise trial.fail("`plan_steps(50)` does not give increasing whole numbers from 1 to 50")


def check_config(trial: Trial) -> None:
    """`Config` is a frozen dataclass with defaults; equal settings are equal and hash alike, so they compile once."""
    config_type: Any = trial.agent.Config
    parameters = getattr(config_type, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        raise trial.fail("Config is not a frozen dataclass, so settings could change under a compiled function")
    try:
        first, second = config_type(), config_type()
    except TypeError as error:
        raise trial.fail(f"Config cannot be made without arguments ({error})") from error
    for config in (first, trial.config):
        for field in dataclasses.fields(config):
            try:
                hash(getattr(config, field.name))
            except TypeError as error:
                kind = type(getattr(config, field.name)).__name__
                raise trial.fail(
                    f"Config cannot be hashed, because its setting '{field.name}' is a {kind}; use a tuple or a frozen "
                    "dataclass"
                ) from error
    if first != second or hash(first) != hash(second):
        raise trial.fail("two Configs with the same settings are not equal, so each would be compiled again")


def check_state(trial: Trial) -> None:
    """State and Info are trees of arrays, and `plan` and `update` return a State of the same form as `init`'s."""
    plain = trial.plain
    for path, leaf in named_leaves(plain.init(key(0, "init"))):
        if not isinstance(leaf, jax.Array | np.ndarray):
            raise trial.fail(f"State must hold arrays only, but {path} is a {type(leaf).__name__}")
    state = jax.eval_shape(plain.init, key(0, "init"))
    planned = jax.eval_shape(plain.plan, key(0, "plan"), state)
    # A State of two parts is itself a pair.
    if not (isinstance(planned, tuple) and len(planned) == 2) or same_structure(planned, state):
        raise trial.fail("`plan` must return a pair, State and Info")
    _check_same_form(trial, "plan", state, planned[0])
    updated = jax.eval_shape(plain.update, state, transition(0, np.int32(0), 1.0, 1, False))
    _check_same_form(trial, "update", state, updated)
    again = jax.eval_shape(plain.plan, key(0, "plan"), updated)
    if _form(again[1]) != _form(planned[1]):
        raise trial.fail("`plan` returns Infos of different shapes or types")


def check_actions(trial: Trial) -> None:
    """`act` returns one whole number, which is the number of an action, in every state and for every key."""
    state = jax.eval_shape(trial.plain.init, key(0, "init"))
    form = jax.eval_shape(trial.plain.act, key(0, "act"), state, np.int32(0))
    if getattr(form, "shape", None) != () or not jnp.issubdtype(form.dtype, jnp.integer):
        found = " and ".join(_leaf_form(leaf) for _, leaf in named_leaves(form)) or "nothing"
        raise trial.fail(f"`act` must return a whole number without axes, but returned {found}")
    actions = [turn.action for turn in trial.course.turns]
    for observation in range(trial.spaces.states):
        for seed in range(3):
            actions.append(trial.compiled.act(key(seed, "act"), trial.course.state, np.int32(observation)))
    for action in actions:
        if not 0 <= int(action) < trial.spaces.actions:
            raise trial.fail(f"`act` returned action {int(action)}, but actions are 0 to {trial.spaces.actions - 1}")


def check_policy(trial: Trial) -> None:
    """`policy` gives every state a distribution; where `act` leaves nothing to chance, the one that it follows."""
    shape = (trial.spaces.states, trial.spaces.actions)
    observation = np.int32(0)
    program = read_program(trial.plain.act, key(0, "act"), trial.course.state, observation)
    for state in (trial.course.turns[0].state, trial.course.state):
        policy = trial.compiled.policy(state)
        if getattr(policy, "shape", None) != shape or not jnp.issubdtype(policy.dtype, jnp.floating):
            form = f"{getattr(policy, 'dtype', type(policy).__name__)}{list(getattr(policy, 'shape', ()))}"
            raise trial.fail(f"`policy` must be floats of shape {list(shape)}, states and actions, but is {form}")
        rows = np.asarray(policy, np.float64)
        if not (np.isfinite(rows).all() and (rows >= 0).all() and np.allclose(rows.sum(-1), 1, atol=1e-4)):
            raise trial.fail("a row of `policy` is not a distribution: its entries are negative or do not sum to one")
        if program.uses_first or program.draws:
            continue
        for number in range(trial.spaces.states):
            action = int(trial.compiled.act(key(0, "act"), state, np.int32(number)))
            if rows[number, action] < 1 - 1e-4:
                raise trial.fail(
                    f"`act` always takes action {action} in state {number}, where `policy` gives it probability "
                    f"{rows[number, action]:.3g}"
                )


def _form(tree: Any) -> list[tuple[str, str]]:
    return [(path, _leaf_form(leaf)) for path, leaf in named_leaves(tree)]


def _leaf_form(leaf: Any) -> str:
    # JAX compiles again for a weak type (that of a Python number) where a strong one was before.
    weak = "weakly typed " if getattr(leaf, "weak_type", False) else ""
    return f"{weak}{leaf.dtype}{list(leaf.shape)}"


def _check_same_form(trial: Trial, function: str, before: Any, after: Any) -> None:
    if not same_structure(before, after):
        raise trial.fail(f"`{function}` returns a State of another structure than `init`")
    for (path, old), (_, new) in zip(_form(before), _form(after), strict=True):
        if old != new:
            raise trial.fail(f"`{function}` changes State{path} from {old} to {new}; shapes and types must stay")
