"""What is fuzzed: each target takes bytes and must end quietly or with the declared error, `UserError`.

Targets need nothing but Bellief, so that the tests can run them on the corpus without a fuzzer. Archives (posteriors,
agents) are also built from fuzzed members: mutating the bytes of a zip file alone rarely gets past its checksums.
"""

import functools
import gzip
import io
import json
import math
import os
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from bellief.agents.saved_agent import load_agent, save_agent
from bellief.errors import UserError
from bellief.evaluation.policy_forms import read_policy
from bellief.evaluation.posterior import ValuePosterior
from bellief.logs.read import as_tally, as_transitions
from bellief.logs.tally import LogStatistics
from bellief.logs.transitions import Transitions
from bellief.sweeps.cells import expand
from bellief.sweeps.spec import load_spec

LARGEST_DENSE = 10_000


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="bellief-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))


def _file(name: str, content: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(content)
    return path


def _declared(function):
    """The target with the declared error allowed; anything else passes through and is a finding."""

    @functools.wraps(function)
    def target(content: bytes) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                function(content)
            except UserError as error:
                message = str(error)
                assert len(message.strip().splitlines()) == 1, f"not one sentence: {message!r}"

    return target


def _check_log(data: Transitions, path: Path) -> None:
    """What came through must hold together, and the reader that keeps no rows must say the same."""
    assert len(data) > 0
    assert data.state.min() >= 0
    assert max(data.state.max(), data.next_state.max()) < data.states
    assert data.action.min() >= 0
    assert data.action.max() < data.actions
    assert np.isfinite(data.reward).all()
    assert data.first[0]
    if data.states * data.actions <= LARGEST_DENSE:
        statistics = LogStatistics.from_file(path)
        assert (statistics.states, statistics.actions) == (data.states, data.actions)
        assert len(statistics) == len(data)


@_declared
def csv(content: bytes) -> None:
    """A log in CSV."""
    path = _file("log.csv", content)
    _check_log(Transitions.from_csv(path), path)


def _column(seed: int, kind: int, rows: int):
    """A column of one of the types that Parquet files have, from a few bytes."""
    import decimal

    import pyarrow as arrow

    numbers = [(seed * 7 + row * (seed % 5)) % 4 for row in range(rows)]
    gap = [None if row == seed % (rows + 1) else number for row, number in enumerate(numbers)]
    choices = [
        lambda: arrow.array(numbers),
        lambda: arrow.array(gap, arrow.int64()),
        lambda: arrow.array([number / 2 for number in numbers]),
        lambda: arrow.array([str(number) for number in numbers]),
        lambda: arrow.array([None if number is None else f"s{number}" for number in gap], arrow.string()),
        lambda: arrow.array([bytes([number, 0xFF]) for number in numbers], arrow.binary()),
        lambda: arrow.array([[number] for number in numbers]),
        lambda: arrow.array([{"a": number} for number in numbers]),
        lambda: arrow.array([decimal.Decimal(number) for number in numbers]),
        lambda: arrow.array(numbers, arrow.timestamp("ns")),
        lambda: arrow.array([number % 2 == 0 for number in numbers]),
        lambda: arrow.nulls(rows),
        lambda: arrow.array([f"s{number}" for number in numbers]).dictionary_encode(),
        lambda: arrow.array([[math.nan, math.inf, -math.inf, 1e300][number] for number in numbers]),
        lambda: arrow.array([2**64 - 1 - number for number in numbers], arrow.uint64()),
        lambda: arrow.array(gap, arrow.duration("us")),
        lambda: arrow.array([np.float16(number) for number in numbers], arrow.float16()),
        lambda: arrow.array(numbers, arrow.date32()),
        lambda: arrow.array(numbers, arrow.time64("us")),
    ]
    return choices[kind % len(choices)]()


@_declared
def parquet(content: bytes) -> None:
    """A log in Parquet: raw bytes, or a sound file whose columns have types that nobody expects there."""
    if content[:1] != b"T":
        path = _file("log.parquet", content)
    else:
        import pyarrow
        import pyarrow.parquet as writer

        recipe = content[1:20].ljust(19, b"\0")
        names = ("state", "action", "reward", "next_state", "terminated", "truncated", "episode", "other")
        rows = recipe[18] % 5
        columns = {
            name: _column(recipe[2 * place], recipe[2 * place + 1], rows)
            for place, name in enumerate(names)
            if place < 4 or recipe[16] >> (place - 4) & 1
        }
        buffer = io.BytesIO()
        try:
            writer.write_table(pyarrow.table(columns), buffer)
        except pyarrow.ArrowException:
            return
        path = _file("log.parquet", buffer.getvalue())
    _check_log(Transitions.from_parquet(path), path)


@_declared
def json_lines(content: bytes) -> None:
    """A log in JSON lines."""
    path = _file("log.jsonl", content)
    _check_log(Transitions.from_file(path), path)


@_declared
def tally(content: bytes) -> None:
    """Counts in CSV or Parquet."""
    path = _file("tally.parquet" if content[:4] == b"PAR1" else "tally.csv", content)
    found = as_tally(path)
    assert len(found) > 0
    assert found.cell_count.min() >= 1
    assert np.isfinite(found.cell_mean).all()


def _same_either_way(path: Path, **options) -> None:
    """DuckDB's counts and those of the rows, read one by one, agree, or the same sentence refuses both."""
    found, sentences = [], []
    for read in (as_tally, lambda *given, **more: as_transitions(*given, **more).tally()):
        try:
            found.append(read(path, **options))
        except UserError as error:
            sentences.append(str(error))
    assert len(found) in (0, 2), sentences
    if found:
        one, other = found
        assert (one.states, one.actions, len(one), one.ends, one.episodes) == (
            other.states, other.actions, len(other), other.ends, other.episodes,
        )  # fmt: skip
        assert np.array_equal(one.cell_count, other.cell_count)
        assert np.allclose(one.cell_mean, other.cell_mean, rtol=1e-9, atol=0, equal_nan=True)
        return
    assert sentences[0] == sentences[1], sentences
    raise UserError(sentences[0])


CHOSEN_COLUMNS = (
    None,
    {"state": "a", "next_state": "b"},
    {"state": "state", "reward": "state"},
    {"terminated": "done"},
    {"nothing": "state"},
)


@_declared
def folded(content: bytes) -> None:
    """A log as DuckDB reads it: the first byte chooses the format, the second labels and columns."""
    kind, choice, rest = content[:1] or b"c", content[1:2] or b"0", content[2:]
    ending = {b"j": "jsonl", b"z": "csv.gz", b"g": "csv.gz", b"p": "parquet"}.get(kind, "csv")
    path = _file(f"folded.{ending}", gzip.compress(rest) if kind == b"z" else rest)
    labels = (None, True, False)[choice[0] % 3]
    _same_either_way(path, labels=labels, columns=CHOSEN_COLUMNS[choice[0] // 3 % len(CHOSEN_COLUMNS)])


@functools.cache
def _queried() -> Path:
    path = _folder() / "queried" / "log.csv"
    path.parent.mkdir()
    path.write_text("state,action,reward,next_state\n0,0,1,1\n1,1,0.5,0\n0,1,2,0\n")
    return path


@_declared
def query(content: bytes) -> None:
    """A query over a log, in which LOG stands for its path; nothing may be written."""
    path = _queried()
    before = path.read_bytes()
    text = content.decode(errors="replace").replace("LOG", f"'{path}'")
    try:
        assert len(as_tally(None, query=text)) > 0
    finally:
        assert path.read_bytes() == before
        assert [file.name for file in path.parent.iterdir()] == ["log.csv"]


@functools.cache
def _numbered() -> Transitions:
    return Transitions.from_arrays([0, 1, 2, 1], [0, 1, 0, 1], [0.0, 1.0, 0.5, 2.0], [1, 2, 0, 0])


@functools.cache
def _labelled() -> Transitions:
    return Transitions.from_frame(
        pd.DataFrame({"state": ["a", "b"], "action": ["x", "y"], "reward": [0.0, 1.0], "next_state": ["b", "a"]})
    )


@_declared
def policy(content: bytes) -> None:
    """A policy file, for a log with numbers or with labels, or a policy as it is named on the command line."""
    kind, content = content[:1], content[1:]
    data = _labelled() if kind == b"l" else _numbered()
    named = content.decode(errors="replace").replace("\0", "")
    probabilities = read_policy(named if kind == b"n" else _file("policy.csv", content), data)
    assert probabilities.shape == (data.states, data.actions)
    assert np.allclose(probabilities.sum(-1), 1, atol=1e-5)


@_declared
def spec(content: bytes) -> None:
    """The description of a sweep, and the cells that it stands for."""
    path = _file("sweep.yaml", content)
    found = load_spec(path)
    if found.runs <= 1000 and found.steps <= 10_000:
        expand(found, check=False)


def _archive(content: bytes, base: dict[str, bytes], header: str) -> bytes:
    """A sound zip file: `base` with its header, or one member, replaced by the fuzzed bytes."""
    members = dict(base)
    names = sorted(base)
    place = content[0] if content else 0
    members[header if place % 2 else names[place // 2 % len(names)]] = content[1:]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, member in members.items():
            file.writestr(name, member)
    return buffer.getvalue()


def _as_array(text: bytes) -> bytes:
    """Bytes as the member that NumPy writes for them."""
    buffer = io.BytesIO()
    np.save(buffer, np.frombuffer(text, np.uint8))
    return buffer.getvalue()


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


@functools.cache
def _posterior_members() -> dict[str, bytes]:
    exists, notes = np.ones(3, dtype=bool), {"warnings": []}
    values = np.arange(12.0).reshape(4, 3)
    posterior = ValuePosterior(values, np.array([1.0, 0.0, 0.0]), "joint", 0.9, 2, 4, exists, notes)
    return _members(posterior.save(_folder() / "base.npz"))


@_declared
def posterior(content: bytes) -> None:
    """A saved value posterior: raw bytes, another header (J), or another member (M)."""
    kind, rest = content[:1], content[1:]
    if kind == b"J":
        content = _archive(b"\1" + _as_array(rest), _posterior_members(), "about.npy")
    elif kind == b"M":
        content = _archive(rest, _posterior_members(), "about.npy")
    loaded = ValuePosterior.load(_file("posterior.npz", content))
    # What was accepted must be usable.
    json.dumps(loaded.to_dict(), allow_nan=True)
    loaded.explain()
    repr(loaded)


@functools.cache
def _agent_members() -> dict[str, bytes]:
    import jax

    from bellief.agents import psrl_paper
    from bellief.types import Spaces

    spaces, config = Spaces(3, 2, False, 0.0, 1.0), psrl_paper.Config()
    state = psrl_paper.init(jax.random.key(0), config, spaces)
    return _members(save_agent(_folder() / "base-agent.npz", "psrl-paper", config, spaces, state))


@_declared
def agent(content: bytes) -> None:
    """A saved agent: raw bytes, another header (J), or another member (M)."""
    kind, rest = content[:1], content[1:]
    if kind == b"J":
        content = _archive(b"\1" + _as_array(rest), _agent_members(), "header.npy")
    elif kind == b"M":
        content = _archive(rest, _agent_members(), "header.npy")
    load_agent(_file("agent.npz", content))


def _either(first: str, second: str):
    """A target whose inputs go to one of two by their first byte."""

    def target(content: bytes) -> None:
        TARGETS[first if content[:1] <= b"\x7f" else second](content[1:])

    return target


TARGETS = {
    function.__name__: function
    for function in (csv, parquet, json_lines, tally, folded, query, policy, spec, posterior, agent)
}
TARGETS |= {"logs": _either("csv", "parquet"), "archives": _either("posterior", "agent")}
