"""From files to counts: one aggregate query of DuckDB's for each unit of rows, merged in a fixed order.

A unit is a file, or some row groups of a Parquet file, and is folded by one thread, row after row. Which units there
are depends on the files alone, and their results are merged in the order of the files, so that the counts and the
moments of rewards are the same bit for bit with any number of threads or machines. Means are Kahan sums and squared
deviations are Welford's, so that rewards far from zero keep their variance.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from bellief.logs.axes import GAP, Axis, Doubt
from bellief.logs.columns import Taken
from bellief.logs.engine import Relation, path_literal, relation, sound_gzip
from bellief.logs.paths import LogFile
from bellief.logs.reward_moments import Moments, merge
from bellief.logs.tally import Tally, cell_keys

if TYPE_CHECKING:
    import duckdb

# Rows of a unit, at least, where a file has more, and about the most: a unit costs some 20 ms of its own.
UNIT, LARGEST_UNIT = 4_000_000, 16_000_000

# Units that a file is divided into, where these have sizes between the two: even, so that two threads share them.
UNITS = 8

# Cells of several units that are held before they are merged into one.
MOST_HELD = 4_000_000

# Variances below this part of the squared mean are computed again from deviations.
FAR = 1e-4

# Larger rewards' sums of squares would overflow.
LARGEST_REWARD = 1e100

TRUE, FALSE = ("true", "t", "1", "1.0", "yes", "y"), ("false", "f", "0", "0.0", "no", "n", "")
_WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT")
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", *_WIDE)


class Unit(NamedTuple):
    """Rows `begin` to `end` (exclusive; None: all) of a file."""

    file: LogFile
    taken: Taken
    source: Relation
    begin: int = 0
    end: int | None = None


class Edge(NamedTuple):
    """The first row's state, the last row's next state, and whether an episode ended there."""

    state: np.ndarray
    following: np.ndarray
    ended: bool


class Episodes(NamedTuple):
    """The hash of each episode's name, the order of its first row, and that row's state."""

    name: UInt64[np.ndarray, "E"]
    order: np.ndarray
    state: np.ndarray


class Part(NamedTuple):
    """Counts of one unit; states and actions as in the file."""

    state: np.ndarray
    action: np.ndarray
    following: np.ndarray
    terminated: Bool[np.ndarray, "C"]
    number: Int[np.ndarray, "C"]
    mean: Float[np.ndarray, "C"]
    squares: Float[np.ndarray, "C"]
    low: Float[np.ndarray, "C"]
    high: Float[np.ndarray, "C"]
    firsts: Int[np.ndarray, "C"]
    edge: Edge | None
    episodes: Episodes | None


def units(connection: "duckdb.DuckDBPyConnection", file: LogFile, taken: Taken) -> Iterator[Unit]:
    """The units of a file, from its metadata alone."""
    source = relation(connection, file)
    if file.format != "parquet":
        yield Unit(file, taken, source)
        return
    query = (
        f"select any_value(row_group_num_rows) from parquet_metadata({path_literal(file.path)}) group by row_group_id"
    )
    sizes = [int(row[0]) for row in connection.execute(f"{query} order by row_group_id").fetchall()]
    rows = sum(sizes)
    fitting = min(max(UNITS, rows // LARGEST_UNIT), rows // UNIT)
    # An even number of units: two threads that fold three take as long as for four.
    least = -(-rows // max(fitting // 2 * 2, 1))
    begin = end = 0
    for size in sizes:
        end += size
        if end - begin >= least:
            yield Unit(file, taken, source, begin, end)
            begin = end
    if end > begin:
        yield Unit(file, taken, source, begin, end)


def fold_unit(unit: Unit, connection: "duckdb.DuckDBPyConnection") -> Part | None:
    """Counts of a unit; None where there are no rows. Raises `Doubt` where a row needs a closer look."""
    import duckdb

    if unit.file.compression == "gzip" and not sound_gzip(unit.file.path):
        raise Doubt("damaged")
    try:
        rows, by_episode = _rows(unit)
        found = connection.execute(_cells_query(rows, unit)).fetchnumpy()
        if not len(found["s"]):
            return None
        found |= _refined(connection, rows, found)
        episodes = _episodes(connection, rows) if by_episode else None
        edge = None if by_episode else _edge(connection, rows, found, unit)
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, UnicodeError, RuntimeError) as error:
        raise Doubt(str(error)) from None
    return _part(found, edge, episodes)


def _part(found: dict[str, np.ndarray], edge: Edge | None, episodes: Episodes | None) -> Part:
    columns = {name: filled(values) for name, values in found.items()}
    bad = any(np.ma.getmaskarray(found[name]).any() for name in ("t", "low", "high"))
    low, high = columns["low"], columns["high"]
    sound = (np.abs(low) <= LARGEST_REWARD) & (np.abs(high) <= LARGEST_REWARD)
    if bad or not sound.all() or columns["doubts"].any() or (columns["rewards"] != columns["n"]).any():
        raise Doubt
    # Equal rewards: exactly that reward, and no spread.
    equal = low == high
    return Part(
        columns["s"],
        columns["a"],
        columns["f"],
        columns["t"].astype(bool),
        columns["n"].astype(np.int64),
        np.where(equal, low, np.clip(columns["mean"], low, high)),
        np.where(equal, 0.0, columns["variance"] * columns["n"]),
        low,
        high,
        columns["firsts"].astype(np.int64),
        edge,
        episodes,
    )


def filled(values: np.ndarray) -> np.ndarray:
    """A column of DuckDB's without nulls: `GAP` stands for them in whole numbers, NaN in floats."""
    data = np.ma.getdata(values)
    if data.dtype.kind in "iu":
        return np.where(np.ma.getmaskarray(values), GAP, data.astype(np.int64))
    return np.where(np.ma.getmaskarray(values), np.nan, data) if data.dtype.kind == "f" else data


def _rows(unit: Unit) -> tuple[str, bool]:
    """The rows of a unit with the columns s, a, f, t, r, e (ended), d (doubtful), i (place), x (episode), o (order)."""
    source = unit.source
    column = dict(zip(source.names, zip(source.columns, source.types, strict=True), strict=True))
    roles = {role: column[name] for role, name in unit.taken.roles.items()}
    is_parquet = unit.file.format == "parquet"
    is_csv = unit.file.format == "csv"
    truncated = flag_expression(*roles["truncated"], is_csv) if "truncated" in roles else "false"
    terminated = flag_expression(*roles["terminated"], is_csv) if "terminated" in roles else "false"
    if "done" in roles:
        # `done and not truncated` would be false, not null, where the first is no flag and the second is true.
        done = flag_expression(*roles["done"], is_csv)
        terminated = f"(case when {done} then not {truncated} when not {done} then false end)"
    selected = {
        "s": key_expression(*roles["state"]),
        "a": key_expression(*roles["action"]),
        "f": key_expression(*roles["next_state"]),
        "t": terminated,
        "r": number_expression(*roles["reward"]),
        "e": terminated if truncated == "false" else f"({terminated} or {truncated})",
        "d": f"({truncated}) is null" if truncated != "false" else "false",
        "i": "file_row_number" if is_parquet else "row_number() over ()",
    }
    if "episode" in roles:
        selected["x"] = roles["episode"][0]
        selected["o"] = number_expression(*roles["step"]) if "step" in roles else selected["i"]
    where = f" where file_row_number between {unit.begin} and {unit.end - 1}" if unit.end else ""
    columns = ", ".join(f"{expression} as {name}" for name, expression in selected.items())
    return f"(select {columns} from {source.sql}{where})", "episode" in roles


def _cells_query(rows: str, unit: Unit) -> str:
    by_episode, truncates = "episode" in unit.taken.roles, "truncated" in unit.taken.roles
    # Without an order these windows are streamed: they see the row before in the file and need no memory.
    before = "" if by_episode else ", lag(f) over () as before, lag(e) over () as broken"
    first = "false" if by_episode else "(before is distinct from s or broken)"
    # The first and the last row of a Parquet file are found by their numbers; other files are read only once.
    places = (
        "" if unit.file.format == "parquet" else ", min(i) as row_first, max(i) as row_last, arg_max(e, i) as ended"
    )
    return (
        "select s, a, f, t, count(*) as n, count(r) as rewards, favg(r) as mean, var_pop(r) as variance, "
        f"min(r) as low, max(r) as high, {'count_if(d)' if truncates else '0'} as doubts, count_if(z) as firsts"
        f"{places} from (select *, {first} as z from (select *{before} from {rows})) group by s, a, f, t "
        "order by s, a, f, t"
    )


def _refined(connection: "duckdb.DuckDBPyConnection", rows: str, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Means and variances once more, from deviations, where rewards are so far from zero that digits were lost."""
    mean, variance = (filled(found[name]) for name in ("mean", "variance"))
    with np.errstate(invalid="ignore", over="ignore"):
        lost = (variance < mean**2 * FAR) & (found["low"] < found["high"])
    if not np.ma.filled(lost, False).any():
        return {}
    same = " and ".join(f"rows.{name} is not distinct from centres.{name}" for name in "saft")
    again = connection.execute(
        f"with centres as (select s, a, f, t, favg(r) as m from {rows} group by s, a, f, t) "
        f"select fsum(r - m) as gap, fsum((r - m) * (r - m)) as squares from {rows} rows join centres on {same} "
        "group by rows.s, rows.a, rows.f, rows.t order by rows.s, rows.a, rows.f, rows.t"
    ).fetchnumpy()
    gap = filled(again["gap"]) / found["n"]
    return {"mean": mean + gap, "variance": np.maximum(filled(again["squares"]) / found["n"] - gap**2, 0)}


def _edge(connection: "duckdb.DuckDBPyConnection", rows: str, found: dict[str, np.ndarray], unit: Unit) -> Edge:
    if unit.end is not None:
        query = f"select s, f, e from {rows} where i in ({unit.begin}, {unit.end - 1}) order by i"
        two = connection.execute(query).fetchnumpy()
        return Edge(filled(two["s"])[:1], filled(two["f"])[-1:], bool(two["e"][-1]))
    first_at, last_at = int(found["row_first"].argmin()), int(found["row_last"].argmax())
    state, following = filled(found["s"])[first_at], filled(found["f"])[last_at]
    kind = found["s"].dtype
    return Edge(np.array([state], kind), np.array([following], kind), bool(found["ended"][last_at]))


def _episodes(connection: "duckdb.DuckDBPyConnection", rows: str) -> Episodes:
    """The first row of each episode: by step, or in the order of the file."""
    first = f"select x, min(o) as o, arg_min(s, o) as s, count(*) - count(o) as gaps from {rows} group by x"
    query = f"select hash(coalesce(trim(x::varchar), 'nan')) as x, o, s, gaps from ({first})"
    found = connection.execute(query).fetchnumpy()
    if found["gaps"].any():
        raise Doubt
    return Episodes(np.ma.getdata(found["x"]), *(filled(found[name]) for name in ("o", "s")))


def key_expression(column: str, kind: str) -> str:
    """A state or an action of a column of this type: a whole number, a float or a text."""
    if kind in _WHOLE:
        return f"try_cast({column} as bigint)" if kind in _WIDE else column
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return f"{column}::double"
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        return f"coalesce(trim({column}::varchar), '')"
    raise Doubt


def number_expression(column: str, kind: str) -> str:
    """A column of this type as floats; null where a cell is no number."""
    if kind in _WHOLE or kind in ("FLOAT", "DOUBLE", "BOOLEAN") or kind.startswith("DECIMAL"):
        return f"{column}::double"
    if kind == "VARCHAR":
        return f"(case when contains({column}, '_') then null else try_cast(trim({column}) as double) end)"
    raise Doubt


def flag_expression(column: str, kind: str, is_csv: bool) -> str:
    """A column of this type as true and false; null where a cell is neither. Empty cells of a CSV file are false."""
    if kind == "BOOLEAN":
        return column
    if kind in _WHOLE or kind in ("FLOAT", "DOUBLE"):
        return f"(case {column} when 1 then true when 0 then false end)"
    if kind == "VARCHAR":
        text = f"lower(trim({f'coalesce({column}, {chr(39) * 2})' if is_csv else column}))"
        true, false = (", ".join(f"'{word}'" for word in words) for words in (TRUE, FALSE))
        return f"(case when {text} in ({true}) then true when {text} in ({false}) then false end)"
    raise Doubt


class Folding:
    """Parts merged so far, in the order in which they are added."""

    def __init__(self, states: Axis, actions: Axis):
        self.states, self.actions = states, actions
        self.parts = 0
        self.held: list[Moments] = []
        self.starts = np.zeros(0, np.int64)
        self.last: tuple[int, bool] | None = None
        self.episodes = Episodes(np.zeros(0, np.uint64), np.zeros(0), np.zeros(0, np.int64))

    def add(self, part: Part | None, number: int) -> None:
        """Account for unit `number`. Labels are numbered in the order of units, so add units in order."""
        self.parts += 1
        if part is None:
            return
        cells = len(part.state)
        every = _joined(part.state, part.following)
        codes = self.states.codes(every, np.append(np.zeros(cells, bool), part.terminated))
        state, following = codes[:cells], codes[cells:]
        keys = cell_keys(state, self.actions.codes(part.action), part.terminated, following)
        moments = (part.number, part.mean, part.squares, part.low, part.high)
        # Two spellings of a label may be one cell.
        self.held.append(merge(Moments(keys, *moments)))
        if sum(len(held.key) for held in self.held) > MOST_HELD:
            self.held = [_merged(self.held)]
        if part.episodes is not None:
            self._add_episodes(part.episodes, number)
        elif part.edge is not None:
            self.count_starts(state, part.firsts)
            edge = self.states.codes(_joined(*part.edge[:2]), np.array([False, part.edge.ended]))
            if self.last == (edge[0], False):
                self.starts[edge[0]] -= 1
            self.last = int(edge[1]), part.edge.ended

    def count_starts(self, state: Int[np.ndarray, "C"], times: Int[np.ndarray, "C"]) -> None:
        """Episodes began so often in these states."""
        starts = np.bincount(state, times, minlength=len(self.starts)).astype(np.int64)
        starts[: len(self.starts)] += self.starts
        self.starts = starts

    def _add_episodes(self, part: Episodes, number: int) -> None:
        # Without steps, the row's place in its file: later units come later.
        order = part.order if part.order.dtype.kind == "f" else part.order + (number << 40)
        both = (
            np.append(self.episodes.name, part.name),
            np.append(self.episodes.order.astype(order.dtype), order),
            np.append(self.episodes.state, self.states.codes(part.state)),
        )
        sorting = np.lexsort((both[2], both[1], both[0]))
        name = both[0][sorting]
        kept = sorting[np.append(True, name[1:] != name[:-1])] if len(name) else sorting
        self.episodes = Episodes(*(field[kept] for field in both))

    def finish(self) -> Tally:
        """The counts of all parts; there must have been a row."""
        if len(self.episodes.name):
            self.count_starts(self.episodes.state, np.ones(len(self.episodes.state), np.int64))
        return Tally.assemble(_merged(self.held), self.starts, self.states.finish(), self.actions.finish())


def _joined(state: np.ndarray, following: np.ndarray) -> np.ndarray:
    """Both columns in one, if they are of one kind; whole numbers with gaps often come as floats."""
    kinds = {state.dtype.kind, following.dtype.kind}
    if "O" in kinds and len(kinds) > 1:
        raise Doubt
    if kinds == {"i", "f"}:
        state, following = (
            np.where(part == GAP, np.nan, part) if part.dtype.kind == "i" else part for part in (state, following)
        )
    return np.concatenate([state, following])


def _merged(parts: Iterable[Moments]) -> Moments:
    return merge(Moments(*(np.concatenate(fields) for fields in zip(*parts, strict=True))))
