"""What a sweep is: a grid of environments and agents, written in YAML and checked field by field.

A spec names things and gives numbers; it cannot run code, and it cannot say where files go: the folder is chosen on the
command line, and the sweep's name becomes one folder in it.

>>> from bellief.sweeps.spec import Spec
>>> spec = Spec(name="chains", steps=20, runs=2, environments=["nchain"], agents=["q-learning"])
>>> spec.seed, [agent.name for agent in spec.agents]
(0, ['q-learning'])
"""

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import yaml

from bellief.errors import UserError, require, shorten

if TYPE_CHECKING or importlib.util.find_spec("pydantic"):
    from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
else:
    from bellief.sweeps.plain_models import BaseModel, ConfigDict, Field, ValidationError, field_validator

FORMAT = 1
LARGEST_FILE = 1_000_000
MOST_CELLS = 1_000_000

Scalar = bool | int | float | str | None
Setting = Scalar | list[Any]
Steps = Annotated[int, Field(ge=1, lt=2**31)]
Runs = Annotated[int, Field(ge=1, le=1_000_000)]
HalfLife = Annotated[float, Field(gt=0, allow_inf_nan=False)]
# Names become names of folders, labels are shown in tables and pictures.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Version = Annotated[str, Field(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){0,2}$")]
Label = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f/\\]{1,80}$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Entry(_Model):
    name: str = Field(description="The registered name.", min_length=1, max_length=200)
    label: Label | None = Field(None, description="What it is called in tables and pictures; decides no number.")
    settings: dict[str, Setting] = Field({}, description="Settings by name; the others keep their usual values.")
    grid: dict[str, Annotated[list[Setting], Field(min_length=1)]] = Field(
        {}, description="Settings with a list of values each; every combination is run."
    )
    steps: Steps | None = Field(None, description="Steps of each run, instead of the sweep's.")
    runs: Runs | None = Field(None, description="Number of runs, instead of the sweep's.")


class EnvironmentEntry(_Entry):
    """One environment, or several where a grid of settings is given."""

    half_life: HalfLife | None = Field(None, description="Half-life of the smoothed curves, instead of the sweep's.")
    table: bool = Field(False, description="Read a Gymnasium environment's transition table and run compiled.")
    bins: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Cut Box observations of a Gymnasium environment into so many bins a dimension."
    )
    continuous: bool = Field(False, description="Learn from a Gymnasium environment's Box observations as vectors.")


class AgentEntry(_Entry):
    """One agent, or several where a grid of settings is given. Its `steps` and `runs` go before the environment's."""

    only: list[str] | None = Field(None, description="Labels of the only environments it is run in.")


class Spec(_Model):
    """A sweep: every agent in every environment, so many runs each."""

    name: Name = Field(description="Name of the sweep and of its folder.")
    bellief: Version | None = Field(
        None, description="Version of Bellief that it was written for, 0.2 or later; without it, 0.1."
    )
    seed: int = Field(0, ge=0, lt=2**32, description="Root of all randomness.")
    steps: Steps = Field(10_000, description="Steps of each run.")
    runs: Runs = Field(10, description="Runs of each agent in each environment.")
    half_life: HalfLife = Field(1000.0, description="Steps after which a reward counts half in the smoothed curves.")
    readings: list[Steps] = Field([], description="Steps at which to read the curves, besides the usual ones.")
    environments: list[EnvironmentEntry] = Field(min_length=1, description="Environments; a bare name will do.")
    agents: list[AgentEntry] = Field(min_length=1, description="Agents; a bare name will do.")

    @field_validator("bellief", mode="before")
    @classmethod
    def _version_as_text(cls, value: Any) -> Any:
        """Version 0.1 itself is the same as none."""
        text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        return None if isinstance(text, str) and re.fullmatch(r"0\.1(\.[0-9]+)?", text) else text

    @field_validator("environments", "agents", mode="before")
    @classmethod
    def _bare_names(cls, value: Any) -> Any:
        return (
            [{"name": item} if isinstance(item, str) else item for item in value] if isinstance(value, list) else value
        )

    def to_yaml(self) -> str:
        """The whole spec, every field, as it is saved beside the results."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


class _Loader(yaml.SafeLoader):
    """Safe loading that also refuses keys given twice and references, which can grow without bound."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("references (& and *) are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if name in keys:
                raise yaml.YAMLError(f"'{shorten(str(name), 80)}' is given twice")
            keys.add(name)
        return super().construct_mapping(node, deep)


# YAML 1.1 reads 1e6 as text; people mean the number.
_Loader.yaml_implicit_resolvers = {
    first: [*resolvers] for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def parse_yaml(text: str, source: str) -> Any:
    """Plain data from YAML text; anything else than data is refused."""
    try:
        return yaml.load(text, Loader=_Loader)
    except RecursionError as error:
        raise UserError(f"{source} is nested too deeply; a sweep needs a few levels only.") from error
    except (yaml.YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        what = getattr(error, "problem", None) or str(error)
        raise UserError(f"{source}{place} cannot be read as YAML ({what}); correct it there.") from error


def load_spec(path: str | Path, changes: list[str] | None = None) -> Spec:
    """Read a sweep from a YAML file, with changes of the form `key=value` (`agents.psrl.settings.horizon=50`).

    >>> import pathlib, tempfile
    >>> from bellief.sweeps.spec import load_spec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "sweep.yaml")
    ...     written = path.write_text("{name: chains, steps: 20, environments: [nchain], agents: [q-learning]}")
    ...     spec = load_spec(path, ["runs=3"])
    >>> spec.runs, spec.steps
    (3, 20)
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError as error:
        raise UserError(f"There is no file {path}; name a YAML file that describes a sweep.") from error
    if len(content) > LARGEST_FILE:
        raise UserError(f"{path} is too large for the description of a sweep ({LARGEST_FILE} bytes at most).")
    try:
        document = parse_yaml(content.decode(), str(path))
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text; name a YAML file that describes a sweep.") from error
    for change in changes or []:
        _change(document, change)
    return build_spec(document, str(path))


def build_spec(document: Any, source: str) -> Spec:
    """A checked spec from plain data; the first mistake is a `UserError` of one sentence."""
    if not isinstance(document, dict):
        raise UserError(f"{source} is no description of a sweep; it needs name, environments and agents.")
    try:
        return Spec.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        given = shorten(str(first["input"]), 80)
        known = {
            "extra_forbidden": "there is no such field",
            "missing": "it is missing",
            "string_pattern_mismatch": f"'{given}' has characters or a length that are not allowed",
        }
        raise UserError(f"{source}: {place}: {known.get(first['type'], first['msg'])}.") from error
    except RecursionError as error:
        raise UserError(f"{source} is nested too deeply; a sweep needs a few levels only.") from error


def _change(document: Any, change: str) -> None:
    """Apply `a.b.c=value`; an item of a list is named by its number, counted from 0, its label or its name."""
    key, equals, text = change.partition("=")
    require(equals and key.strip() and text.strip(), f"--set needs KEY=VALUE, for example steps=1000, not '{change}'.")
    *parents, last = key.strip().split(".")
    if len(parents) > 1 and parents[-1] in ("settings", "grid"):
        pass
    elif "settings" in parents:  # names of settings may have a dot of their own, as prior.dirichlet
        cut = parents.index("settings") + 1
        parents, last = parents[:cut], ".".join([*parents[cut:], last])
    for part in parents:
        document = _step_into(document, part, change)
    if isinstance(document, list):
        document[_place(document, last, change)] = parse_yaml(text, f"--set {change}")
    elif isinstance(document, dict):
        document[last] = parse_yaml(text, f"--set {change}")
    else:
        raise UserError(f"--set cannot change '{key}', because nothing of that name has parts.")


def _step_into(document: Any, part: str, change: str) -> Any:
    if isinstance(document, list):
        place = _place(document, part, change)
        if isinstance(document[place], str):
            document[place] = {"name": document[place]}
        return document[place]
    if isinstance(document, dict):
        return document.setdefault(part, {})
    raise UserError(f"--set cannot follow '{part}' in '{change}'.")


def _place(items: list[Any], part: str, change: str) -> int:
    names = [
        item if isinstance(item, str) else item.get("label", item.get("name")) if isinstance(item, dict) else None
        for item in items
    ]
    if part in names:
        return names.index(part)
    if part.isdigit() and int(part) < len(items):
        return int(part)
    raise UserError(f"--set finds no '{part}' in '{change}'; there are {', '.join(map(str, names))}.")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a sweep file, bare names included."""
    schema = Spec.model_json_schema()
    for field in ("environments", "agents"):
        items = schema["properties"][field]["items"]
        schema["properties"][field]["items"] = {"anyOf": [items, {"type": "string"}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
