"""Settings as people write them: `horizon=50`, turned into a checked `Config`."""

import dataclasses
import math
import types
import typing
from typing import Any

from bellief.beliefs import linear, tabular
from bellief.errors import UserError, require, shorten
from bellief.registry import NEW_MEANINGS


def build_config(config_type: type, agent: str, settings: dict[str, Any]) -> Any:
    """An agent's `Config` from names and values; text is converted to the type of the field it names.

    `prior` takes a name, `paper` or `sparse` for tables and `paper` or `own` for continuous states; single parameters
    of it are set as `prior.dirichlet=0.1`.
    """
    fields = {field.name: field for field in dataclasses.fields(config_type)}
    hints = typing.get_type_hints(config_type)
    values: dict[str, Any] = {}
    prior_changes: dict[str, Any] = {}
    for name, value in settings.items():
        if name.startswith("prior.") and "prior" in fields:
            prior_changes[name.removeprefix("prior.")] = value
            continue
        if name not in fields:
            former = f" (agent '{agent}-paper' has those of version 0.1)" if agent in NEW_MEANINGS else ""
            raise UserError(f"Agent '{agent}' has no setting '{name}'; its settings are {', '.join(fields)}{former}.")
        values[name] = _convert(name, value, hints[name])
    if prior_changes:
        base = values.get("prior", fields["prior"].default)
        # Where the prior depends on other settings, ours is what is changed.
        values["prior"] = _changed_prior(linear.OWN_PRIOR if base is None else base, prior_changes)
    return config_type(**values)


def _changed_prior(base: Any, changes: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(type(base))
    for name in changes:
        require(name in hints, f"A prior has no parameter '{name}'; its parameters are {', '.join(hints)}.")
    return dataclasses.replace(
        base, **{name: _convert(f"prior.{name}", value, hints[name]) for name, value in changes.items()}
    )


def convert_text(value: str) -> Any:
    """Text to the plainest value it can mean: a number, true or false, else itself."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return {"true": True, "false": False, "none": None}.get(value.lower(), value)


def _convert(name: str, value: Any, hint: Any) -> Any:
    choices = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if isinstance(value, str) and tabular.Prior in choices:
        return tabular.named_prior(value)
    if isinstance(value, str) and linear.Prior in choices:
        return linear.named_prior(value)
    if isinstance(value, str) and str not in choices:
        value = convert_text(value)
    elif isinstance(value, str) and type(None) in choices and value.lower() == "none":
        value = None
    if isinstance(value, int) and not isinstance(value, bool) and float in choices and int not in choices:
        value = float(value) if abs(value) < 2**1000 else math.copysign(math.inf, value)
    if not any(isinstance(value, choice) and not (isinstance(value, bool) and choice is int) for choice in choices):
        wanted = " or ".join("none" if choice is type(None) else choice.__name__ for choice in choices)
        raise UserError(f"The setting '{name}' needs {wanted}, not '{value}'.")
    if isinstance(value, int) and abs(value) >= 2**31:
        raise UserError(f"The setting '{name}' must be at most {2**31 - 1}, not {shorten(str(value), 40)}.")
    if isinstance(value, float) and math.isnan(value):
        raise UserError(f"The setting '{name}' needs a number, not '{value}'.")
    return value
