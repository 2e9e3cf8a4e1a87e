"""Agents on disk: one `.npz` file with the arrays of a state under their paths and a header in JSON, no pickle.

The structure of a state is not stored. It is asked of the agent's own `init`, so that a file can only become what the
agent itself would make, and a file that does not fit is refused with a sentence instead of failing later.
"""

import dataclasses
import io
import json
import math
import types
import typing
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bellief.errors import UserError, require
from bellief.files import OMIT_DEFAULT, read_archive, write_whole
from bellief.registry import AGENTS, DISCRETE, find, restored_name, stored_name
from bellief.types import BoxSpaces, Spaces

# A file of format 1 names agents as version 0.1 did; format 2 is written for agents that have a new meaning since.
FORMAT = 2
_KIND = "bellief agent"
_HEADER = "header"


class SavedAgent(NamedTuple):
    """What a file holds: everything that `plan`, `act` and `update` need to continue.

    >>> import jax, tempfile, bellief
    >>> from bellief.agents import q_learning
    >>> spaces, config = bellief.make("nchain").spaces(), q_learning.Config()
    >>> state = q_learning.init(jax.random.key(0), config, spaces)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = bellief.load_agent(bellief.save_agent(f"{folder}/agent.npz", "q-learning", config, spaces, state))
    >>> isinstance(saved, bellief.SavedAgent), saved.config == config, saved.state.q_values.shape
    (True, True, (5, 2))
    """

    agent: Any
    config: Any
    spaces: Spaces
    state: Any


def save_agent(path: str | Path, agent: Any, config: Any, spaces: Spaces, state: Any) -> Path:
    """Write an agent's settings and state to `path`, whole or not at all; an older file there is replaced.

    Args:
        path: the file; `.npz` is the customary ending.
        agent: a registered name. An agent that is not registered may be given itself, and must be given to
            `load_agent` again.
        config: its settings.
        spaces: what it knows about the environment.
        state: what it has learned, of a single run.

    >>> import jax, tempfile, bellief
    >>> from bellief.agents import q_learning
    >>> spaces, config = bellief.make("nchain").spaces(), q_learning.Config(epsilon=0.2)
    >>> state = q_learning.init(jax.random.key(0), config, spaces)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = bellief.save_agent(f"{folder}/agent.npz", "q-learning", config, spaces, state)
    ...     print(path.name, bellief.load_agent(path).config.epsilon)
    agent.npz 0.2
    """
    name = agent if isinstance(agent, str) else _own_name(agent)
    if isinstance(spaces, BoxSpaces):
        raise UserError(f"Agent '{name}' learned in continuous states, and only agents for tables can be saved so far.")
    module = find(AGENTS, "agent", agent).load() if isinstance(agent, str) else agent
    leaves = named_leaves(state)
    check_fit(_template(module, config, spaces), leaves, f"The state does not belong to agent '{name}' in this")
    generation, stored = stored_name(name, DISCRETE) if isinstance(agent, str) else (1, name)
    header = {
        "kind": _KIND,
        "format": generation,
        "bellief": _version(),
        "agent": stored,
        "config": encode_config(config, name),
        "spaces": _encode(tuple(spaces), "spaces"),
        "leaves": described(leaves),
    }
    return write_whole(Path(path), archive(header, {leaf: to_numpy(array) for leaf, array in leaves}, _HEADER))


def load_agent(path: str | Path, agent: Any = None) -> SavedAgent:
    """Read what `save_agent` wrote; `UserError` if the file is damaged, foreign, newer, or does not fit the agent.

    Args:
        path: the file.
        agent: an agent to use instead of the registered one of the saved name.

    >>> import bellief
    >>> bellief.load_agent("nowhere.npz")
    Traceback (most recent call last):
        ...
    bellief.errors.UserError: There is no file nowhere.npz; name one written by save_agent.
    """
    header, arrays = _read(Path(path))
    name = restored_name(header["format"], header["agent"], DISCRETE) if agent is None else header["agent"]
    module = agent if agent is not None else find(AGENTS, "agent", name).load()
    config = decode_config(header["config"], module.Config, f"{path} cannot be used with agent '{name}'")
    spaces = header["spaces"]
    try:
        template = _template(module, config, spaces)
    except Exception as error:  # settings that a class accepts may still make no state
        raise UserError(f"{path} cannot be used with agent '{name}': its settings make no state ({error}).") from error
    complaints = (f"{path} does not fit agent '{name}' of this", f"{path} is damaged")
    return SavedAgent(module, config, spaces, restored(header["leaves"], arrays, template, *complaints))


class _Shape(NamedTuple):
    shape: tuple[int, ...]
    dtype: str


def described(leaves: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Names, shapes and dtypes of arrays, as JSON data."""
    return [{"name": name, "shape": list(leaf.shape), "dtype": str(leaf.dtype)} for name, leaf in leaves]


def archive(header: dict[str, Any], arrays: dict[str, np.ndarray], header_name: str) -> bytes:
    """A NumPy archive (.npz) of the arrays, with the header as JSON in one more."""
    content = io.BytesIO()
    header_array = np.frombuffer(json.dumps(header, allow_nan=False).encode(), np.uint8)
    np.savez(content, allow_pickle=False, **arrays, **{header_name: header_array})
    return content.getvalue()


def restored(
    leaves: list[dict[str, Any]], arrays: dict[str, np.ndarray], template: Any, misfit: str, damaged: str
) -> Any:
    """The tree whose leaves were `described`; `UserError`, beginning with a complaint, unless it fits the template."""
    check_fit(template, [(leaf["name"], _Shape(tuple(leaf["shape"]), leaf["dtype"])) for leaf in leaves], misfit)
    found = [from_numpy(arrays[name], wanted, damaged) for name, wanted in named_leaves(template)]
    return jax.tree.unflatten(jax.tree.structure(template), found)


def _version() -> str:
    from bellief import __version__  # not at the top: the package imports this file by way of its public names

    return __version__


def _own_name(agent: Any) -> str:
    return str(getattr(agent, "__name__", type(agent).__name__))


def _template(module: Any, config: Any, spaces: Spaces) -> Any:
    """Shapes and dtypes of the agent's state; nothing is computed."""
    return jax.eval_shape(lambda key: module.init(key, config, spaces), jax.random.key(0))


def named_leaves(state: Any) -> list[tuple[str, Any]]:
    """The arrays of a state with the names they have in files."""
    return [("state" + jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(state)]


def check_fit(template: Any, leaves: list[tuple[str, Any]], complaint: str) -> None:
    """`UserError`, beginning with the complaint, where names, shapes or dtypes are not those of the template."""
    wanted = named_leaves(template)
    for (name, leaf), (other, found) in zip(wanted, leaves, strict=False):
        expected, actual = (
            f"{one} {two.dtype}{list(two.shape)}" if hasattr(two, "dtype") else f"{one} {type(two).__name__}"
            for one, two in ((name, leaf), (other, found))
        )
        require(expected == actual, f"{complaint} Bellief: it has {actual} where {expected} is expected.")
    if len(wanted) != len(leaves):
        raise UserError(f"{complaint} Bellief: it has {len(leaves)} arrays where {len(wanted)} are expected.")


def _is_key(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def to_numpy(array: Any) -> np.ndarray:
    """An array as NumPy's files can hold it; keys and rare dtypes as integers."""
    plain = np.asarray(jax.random.key_data(array) if _is_key(array) else array)
    # NumPy's files have no bfloat16 or similar types; their bits are stored as integers.
    return plain if plain.dtype.kind in "biufc" else plain.view(f"u{plain.dtype.itemsize}")


def from_numpy(array: np.ndarray, wanted: Any, complaint: str) -> jax.Array:
    """What `to_numpy` was given, which must have had the shape and dtype of `wanted`."""
    try:
        if _is_key(wanted):
            restored = jax.random.wrap_key_data(jnp.asarray(array), impl=wanted.dtype._impl)
        else:
            restored = jnp.asarray(
                array if array.dtype.kind in "biufc" and array.dtype == wanted.dtype else array.view(wanted.dtype)
            )
    except (TypeError, ValueError) as error:
        raise UserError(f"{complaint}: an array is not what the header says.") from error
    if restored.shape != wanted.shape or restored.dtype != wanted.dtype:
        raise UserError(f"{complaint}: an array is not what the header says.")
    return restored


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    foreign = f"{path} is not an agent saved by Bellief, or is damaged; choose a file written by save_agent."
    try:
        arrays = read_archive(path.read_bytes())
        header = json.loads(arrays[_HEADER].tobytes())
        if not isinstance(header, dict) or header.get("kind") != _KIND:
            raise UserError(foreign)
        if not isinstance(header["format"], int) or header["format"] > FORMAT:
            raise UserError(
                f"{path} was written by a newer Bellief ({header.get('bellief')}); update Bellief to read it."
            )
        return _check_header(header), {leaf["name"]: arrays[leaf["name"]] for leaf in header["leaves"]}
    except FileNotFoundError as error:
        raise UserError(f"There is no file {path}; name one written by save_agent.") from error
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise UserError(foreign) from error


def _check_header(header: dict[str, Any]) -> dict[str, Any]:
    """The header, with `spaces` built; an error where a part is missing or of another kind."""
    states, actions, terminates, low, high, support = header["spaces"]
    sizes = [states, actions] if support is None else [states, actions, support]
    bounds = [_decode(bound, Any) for bound in (low, high)]
    if (
        not isinstance(header["agent"], str)
        or not isinstance(header["config"], dict)
        or not all(
            [type(leaf[part]) for part in ("name", "dtype", "shape")] == [str, str, list] for leaf in header["leaves"]
        )
        or not all(type(size) is int and 0 < size < 2**31 for size in sizes)
        or not isinstance(terminates, bool)
        or not all(bound is None or isinstance(bound, int | float) for bound in bounds)
    ):
        raise ValueError("the header is not what save_agent writes")
    return header | {"spaces": Spaces(states, actions, terminates, bounds[0], bounds[1], support)}


def encode_config(config: Any, agent: str) -> dict[str, Any]:
    """Settings as JSON data; `UserError` where they would not come back the same."""
    encoded = {field.name: _encode(getattr(config, field.name), field.name) for field in _written(config)}
    again = decode_config(encoded, type(config), f"The settings of agent '{agent}' cannot be saved")
    for field in dataclasses.fields(config):
        if getattr(again, field.name) != getattr(config, field.name):
            raise UserError(f"The setting '{field.name}' of agent '{agent}' cannot be saved: it would not come back.")
    return encoded


def _written(value: Any) -> list[Any]:
    """The fields of a dataclass that files hold."""
    return [
        field
        for field in dataclasses.fields(value)
        if not (field.metadata.get(OMIT_DEFAULT) and getattr(value, field.name) == field.default)
    ]


def _encode(value: Any, name: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(float(value))}  # JSON has no word for it
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [_encode(item, name) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"fields": {field.name: _encode(getattr(value, field.name), name) for field in _written(value)}}
    raise UserError(
        f"The setting '{name}' is a {type(value).__name__}, which cannot be saved: use numbers, text, tuples or frozen "
        "dataclasses of these."
    )


def decode_config(encoded: dict[str, Any], config_type: type, complaint: str) -> Any:
    """Settings from JSON data; `UserError`, beginning with the complaint, where they do not fit."""
    try:
        hints = typing.get_type_hints(config_type)
        known = {field.name for field in dataclasses.fields(config_type)}
        for name in encoded:
            require(name in known, f"{complaint}: there is no setting '{name}'.")
        return config_type(**{name: _decode(value, hints.get(name, Any)) for name, value in encoded.items()})
    except UserError:
        raise
    except (TypeError, ValueError, KeyError, NameError, AttributeError) as error:
        raise UserError(f"{complaint}: its settings cannot be built again ({error}).") from error


def _decode(value: Any, hint: Any) -> Any:
    """A value from JSON; only the classes that the settings' own annotations name are ever built."""
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    choices = typing.get_args(hint) if is_union else (hint,)
    if isinstance(value, list):
        items = next((typing.get_args(choice) for choice in choices if typing.get_origin(choice) is tuple), ())
        if len(items) == len(value) and Ellipsis not in items:
            return tuple(_decode(item, one) for item, one in zip(value, items, strict=True))
        return tuple(_decode(item, items[0] if items else Any) for item in value)
    if not isinstance(value, dict):
        if value is not None and all(dataclasses.is_dataclass(choice) for choice in choices):
            raise TypeError(f"{value!r} stands where a {getattr(choices[0], '__name__', 'dataclass')} belongs")
        return value
    if "number" in value:
        return float(value["number"])
    for choice in choices:
        if dataclasses.is_dataclass(choice) and isinstance(choice, type):
            return decode_config(value["fields"], choice, f"The settings of {choice.__name__} do not fit")
    raise TypeError("a setting with parts of its own needs a dataclass as its annotation")
