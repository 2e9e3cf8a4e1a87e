"""Which column of a table is the state, which the action, and so on: by the names that people and libraries use."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bellief.errors import UserError
from bellief.logs.feature_columns import NEXT, STATE, feature_names
from bellief.logs.labels import few, shown

REQUIRED = ("state", "action", "reward", "next_state")
OPTIONAL = ("terminated", "truncated", "episode", "step")

# In any case; of Gymnasium, Stable-Baselines3, d3rlpy, Minari, RLDS and plain English.
NAMES: dict[str, tuple[str, ...]] = {
    "state": ("state", "states", "observation", "observations", "obs"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards"),
    "next_state": ("next_state", "next_states", "next_observation", "next_observations", "next_obs"),
    "terminated": ("terminated", "terminal", "terminals", "termination", "terminations", "is_terminal"),
    "done": ("done", "dones"),
    "truncated": ("truncated", "truncation", "truncations", "timeout", "timeouts"),
    "episode": ("episode", "episodes", "episode_id", "trajectory", "trajectory_id"),
    "step": ("step", "steps", "t", "timestep", "timesteps", "time_step"),
}


class Taken(NamedTuple):
    """What was taken for what: the column of each role, the columns of features, and what is left over."""

    roles: dict[str, str]
    features: tuple[str, ...]
    unused: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def used(self) -> dict[str, str]:
        """The name under which each used column is known from here on, by its name in the table."""
        named = {column: role for role, column in self.roles.items()}
        return named | {prefix + name: prefix + name for name in self.features for prefix in (STATE, NEXT)}


def take(columns: Sequence[str], chosen: Mapping[str, str] | None = None, source: str = "") -> Taken:
    """Find the columns of a log; `chosen` (a column for some of the roles) comes before the usual names."""
    columns = [str(column) for column in columns]
    _check_repeated(columns, source)
    roles = roles_of(columns, chosen or {}, source)
    features = () if "state" in roles or "next_state" in roles else feature_names(columns, source)
    needed = ("action", "reward") if features else REQUIRED
    missing = [role for role in needed if role not in roles]
    if missing:
        raise UserError(f"{source}there is no column '{missing[0]}'; the columns are {few(columns)}.")
    notes: tuple[str, ...] = ()
    if "terminated" in roles:
        roles.pop("done", None)
    elif "done" in roles and "truncated" not in roles:
        roles["terminated"] = roles.pop("done")
        notes = (
            f"{source}the column '{shown(roles['terminated'])}' is taken for termination; where episodes may also "
            "be cut off, add a column 'truncated'.",
        )
    if "episode" not in roles:
        roles.pop("step", None)
    taken = Taken(roles, features, (), notes)
    return taken._replace(unused=tuple(column for column in columns if column not in taken.used))


def roles_of(columns: Sequence[str], chosen: Mapping[str, str], source: str = "") -> dict[str, str]:
    """The column of each role that is chosen or known by its name; roles without a column are left out."""
    roles: dict[str, str] = {}
    for role, column in chosen.items():
        if role not in NAMES:
            raise UserError(f"There is no role '{shown(role)}' for a column; choose one of {', '.join(NAMES)}.")
        if column not in columns:
            raise UserError(f"{source}there is no column '{shown(column)}'; the columns are {few(columns)}.")
        if column in roles.values():
            other = next(name for name, taken in roles.items() if taken == column)
            raise UserError(f"The column '{shown(column)}' is chosen for {other} and for {role}; choose one of them.")
        roles[role] = column
    free = [column for column in columns if column not in roles.values()]
    for role, names in NAMES.items():
        found = [column for column in free if column.strip().lower().replace(" ", "_") in names]
        if role in roles or not found:
            continue
        if len(found) > 1:
            raise UserError(
                f"{source}the columns '{shown(found[0])}' and '{shown(found[1])}' could both be the {role}; rename "
                f"one, or choose (columns={{'{role}': ...}}, --columns {role}={shown(found[0])})."
            )
        roles[role] = found[0]
    return roles


def _check_repeated(columns: Iterable[str], source: str) -> None:
    seen: set[str] = set()
    for column in columns:
        if column in seen:
            raise UserError(f"{source}the column '{shown(column)}' is there more than once; keep one of them.")
        seen.add(column)
