"""The part of pydantic that describes a sweep, for machines without it.

Fields are filled in, unknown and missing ones are refused, and limits are checked; types are not. Where a sweep is
written by hand, pydantic says more about a mistake.
"""

import copy
import re
import types
import typing
from typing import Annotated, Any

ConfigDict = dict
_REQUIRED = object()
_LIMITS: dict[str, Any] = {
    "ge": lambda value, limit: value >= limit,
    "gt": lambda value, limit: value > limit,
    "le": lambda value, limit: value <= limit,
    "lt": lambda value, limit: value < limit,
    "min_length": lambda value, limit: len(value) >= limit,
    "max_length": lambda value, limit: len(value) <= limit,
    "pattern": lambda value, limit: re.search(limit, value) is not None,
}


class ValidationError(ValueError):
    """The first mistake, in the form that pydantic gives it."""

    def __init__(self, place: tuple[Any, ...], kind: str, message: str, value: Any):
        super().__init__(message)
        self._mistake = {"loc": place, "type": kind, "msg": message, "input": value}

    def errors(self, include_url: bool = False) -> list[dict[str, Any]]:
        """A list of one mistake."""
        del include_url
        return [self._mistake]


class _FieldInfo:
    def __init__(self, default: Any, limits: dict[str, Any]):
        self.default, self.limits = default, limits


def Field(default: Any = _REQUIRED, **limits: Any) -> Any:
    """Default and limits of a field."""
    return _FieldInfo(default, limits)


def field_validator(*names: str, mode: str) -> Any:
    """Marks a class method that changes what fields are given."""
    del mode

    def mark(method: Any) -> Any:
        method.__func__.fields = names
        return method

    return mark


class BaseModel:
    """Fields with defaults, frozen."""

    def __init__(self, **given: Any):
        hints, own = typing.get_type_hints(type(self), include_extras=True), {}
        for name in given.keys() - hints.keys():
            raise ValidationError((name,), "extra_forbidden", "there is no such field", given[name])
        for name, hint in hints.items():
            if name == "model_config":
                continue
            described = getattr(type(self), name, _REQUIRED)
            field = described if isinstance(described, _FieldInfo) else _FieldInfo(described, {})
            value = given.get(name, field.default)
            if value is _REQUIRED:
                raise ValidationError((name,), "missing", "it is missing", None)
            own[name] = _convert(self._change(name, value), hint, field.limits, (name,))
        vars(self).update(own)

    def _change(self, name: str, value: Any) -> Any:
        for attribute in dir(type(self)):
            method = getattr(type(self), attribute)
            if name in getattr(method, "fields", ()):
                value = method(value)
        return copy.deepcopy(value)

    @classmethod
    def model_validate(cls, document: dict[str, Any]) -> "typing.Self":
        """The model of plain data."""
        return cls(**document)

    def model_dump(self, exclude_defaults: bool = False) -> dict[str, Any]:
        """Plain data."""
        found = {}
        for name, value in vars(self).items():
            described = getattr(type(self), name, None)
            default = described.default if isinstance(described, _FieldInfo) else described
            if not (exclude_defaults and value == default):
                dumped = (
                    [one.model_dump(exclude_defaults) if isinstance(one, BaseModel) else one for one in value]
                    if (isinstance(value, list))
                    else value
                )
                found[name] = dumped
        return found

    def model_copy(self, update: dict[str, Any]) -> "typing.Self":
        """The same with other fields."""
        return type(self)(**(self.model_dump() | update))

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """Only pydantic makes it."""
        raise ImportError("The JSON Schema of a sweep needs pydantic.")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"'{name}' cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(sorted(vars(self))))


def _convert(value: Any, hint: Any, limits: dict[str, Any], place: tuple[Any, ...]) -> Any:
    """The value of a field, items of lists included, within its limits."""
    if value is None:
        return None
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        # Only a field that may be left out has limits here: those of its one other kind.
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return _convert(value, kinds[0], limits, place) if len(kinds) == 1 else value
    if typing.get_origin(hint) is Annotated:
        hint, *more = typing.get_args(hint)
        for field in more:
            limits = limits | field.limits
    for name, limit in limits.items():
        try:
            fits = name not in _LIMITS or _LIMITS[name](value, limit)
        except TypeError:
            fits = False
        if not fits:
            raise ValidationError(place, "limit", f"it must have {name} {limit}", value)
    if typing.get_origin(hint) is list and isinstance(value, list):
        (inner,) = typing.get_args(hint)
        return [_convert(item, inner, {}, (*place, number)) for number, item in enumerate(value)]
    if isinstance(hint, type) and issubclass(hint, BaseModel) and isinstance(value, dict):
        try:
            return hint(**value)
        except ValidationError as error:
            mistake = error.errors()[0]
            raise ValidationError((*place, *mistake["loc"]), mistake["type"], mistake["msg"], value) from None
    return float(value) if hint is float else value
