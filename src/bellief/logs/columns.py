"""Which column of a table is the state, which the action, and so on: by the names that people and libraries use."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bellief.errors import UserError
from bellief.logs.feature_columns import NEXT, STATE, feature_names
from bellief.logs.labels import few, shown

REQUIRED = ("state", "action", "reward", "next_state")
OPTIONAL = ("terminated", "truncated", "episode", "step")

# In any case, also as isTerminal, is-terminal or "is terminal"; of Gymnasium, Stable-Baselines3, d3rlpy, Minari, RLDS
# and plain English.
NAMES: dict[str, tuple[str, ...]] = {
    "state": ("state", "states", "observation", "observations", "obs"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards"),
    "next_state": ("next_state", "next_states", "next_observation", "next_observations", "next_obs"),
    "terminated": (
        "terminated", "terminal", "terminals", "termination", "terminations", "is_terminal", "is_terminated",
        "absorbing", "is_absorbing",
    ),
    "done": ("done", "dones", "is_done", "is_last", "episode_end", "episode_terminal", "episode_terminals"),
    "truncated": (
        "truncated", "truncation", "truncations", "timeout", "timeouts", "is_truncated", "time_limit_truncated",
    ),
    "episode": ("episode", "episodes", "episode_id", "trajectory", "trajectory_id"),
    "step": ("step", "steps", "t", "timestep", "timesteps", "time_step"),
}  # fmt: skip

# Where no column says how episodes end, an unused one with such a name deserves a sentence.
_END_LIKE = re.compile(r"(^|_)(done|end|ended|ends|finish|finished|game_over|time_?out)(_|$)|terminat|terminal|truncat")


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
    repeated = [column for column, times in Counter(columns).items() if times > 1]
    if repeated:
        raise UserError(f"{source}the column '{shown(repeated[0])}' is there more than once; keep one of them.")
    roles = roles_of(columns, chosen or {}, source)
    features = () if "state" in roles or "next_state" in roles else feature_names(columns, source)
    needed = ("action", "reward") if features else REQUIRED
    missing = [role for role in needed if role not in roles]
    if missing:
        raise UserError(f"{source}there is no column '{missing[0]}'; the columns are {few(columns)}.")
    notes: tuple[str, ...] = ()
    if "terminated" in roles:
        # Whatever of `done` is no termination broke off.
        done = roles.pop("done", None)
        if done is not None:
            roles.setdefault("truncated", done)
    elif "done" in roles and "truncated" not in roles:
        roles["terminated"] = roles.pop("done")
        notes = (
            f"{source}the column '{shown(roles['terminated'])}' is taken for termination; where episodes may also "
            "be cut off, add a column 'truncated'.",
        )
    if "episode" not in roles:
        roles.pop("step", None)
    taken = Taken(roles, features, (), notes)
    unused = tuple(column for column in columns if column not in taken.used)
    if "terminated" not in roles and "done" not in roles:
        notes += tuple(
            f"{source}no column says where episodes end; if '{shown(column)}' does, choose it "
            f"(columns={{'terminated': ...}}, --columns terminated={shown(column)})."
            for column in [column for column in unused if _END_LIKE.search(plain(column))][:1]
        )
    return taken._replace(unused=unused, notes=notes)


def plain(column: str) -> str:
    """A column's name in small letters, with underscores between its words.

    >>> [plain(name) for name in ("isTerminal", "NEXT STATE", "TimeLimit.truncated", "episodeID")]
    ['is_terminal', 'next_state', 'time_limit_truncated', 'episode_id']
    """
    return re.sub(r"[\s.\-]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.strip())).lower()


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
        found = [column for column in free if plain(column) in names]
        if role in roles or not found:
            continue
        if len(found) > 1:
            raise UserError(
                f"{source}the columns '{shown(found[0])}' and '{shown(found[1])}' could both be the {role}; rename "
                f"one, or choose (columns={{'{role}': ...}}, --columns {role}={shown(found[0])})."
            )
        roles[role] = found[0]
    return roles
