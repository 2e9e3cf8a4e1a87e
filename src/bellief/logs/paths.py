"""The files that a log consists of: globs and folders expanded, pipes read once, devices refused."""

import glob
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable
from typing import NamedTuple

from bellief.errors import UserError
from bellief.logs.examples import example_path, is_example
from bellief.logs.labels import natural_order, shown

ENDINGS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "json", ".ndjson": "json", ".json": "json"}
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
KINDS = {"csv": "CSV", "parquet": "Parquet", "json": "JSON lines"}
_MAGIC = {b"PAR1": "parquet", b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


class LogFile(NamedTuple):
    """A regular file, what messages call it (nothing: only rows are named), its format and its compression."""

    path: str
    name: str
    format: str
    compression: str | None = None

    @property
    def source(self) -> str:
        """What precedes a message about this file."""
        return f"{self.name}: " if self.name else ""


def log_file(path: str | os.PathLike, name: str | None = None, format: str | None = None) -> LogFile:
    """A file, by the ending of its name; a file with an unknown ending is read as CSV."""
    path = os.fspath(path)
    base, ending = os.path.splitext(path)
    compression = COMPRESSED.get(ending.lower())
    if compression:
        ending = os.path.splitext(base)[1]
    found = format or ENDINGS.get(ending.lower(), "csv")
    return LogFile(path, path if name is None else name, found, compression)


def scratch_folder() -> tempfile.TemporaryDirectory:
    """A private folder for pipes, query results and what does not fit into memory; removed at the end of a `with`."""
    return tempfile.TemporaryDirectory(prefix="bellief-", ignore_cleanup_errors=True)


def expand(data: str | os.PathLike | Iterable[str | os.PathLike], scratch: str, format: str | None = None):
    """The files of a path, a glob, a folder or a list of these, ordered by name (part-2 before part-10)."""
    given = [data] if isinstance(data, str | os.PathLike) else list(data)
    if not given:
        raise UserError("There are no files to read; give at least one.")
    files = [file for number, path in enumerate(given) for file in _expand_one(path, number, scratch, format)]
    by_name: dict[str, list[LogFile]] = {}
    for file in files:
        by_name.setdefault(file.name, []).append(file)
    return [file for name in natural_order(list(by_name)) for file in by_name[name]]


def _expand_one(path: str | os.PathLike, number: int, scratch: str, format: str | None) -> list[LogFile]:
    text = os.fspath(path)
    if is_example(text):
        return [log_file(example_path(text), name=text, format=format)]
    try:
        mode = os.stat(text).st_mode
    except FileNotFoundError:
        found = sorted(glob.glob(text, recursive=True)) if glob.has_magic(text) else []
        if not found:
            kind = KINDS[log_file(text, format=format).format]
            raise UserError(f"{shown_path(text)} does not exist; give the path of a {kind} file.") from None
        return [file for each in found for file in _expand_one(each, number, scratch, format)]
    except (OSError, ValueError) as error:
        raise UserError(f"{shown_path(text)} cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    if stat.S_ISDIR(mode):
        return _folder(text, format)
    if _is_pipe(mode):
        return [_pipe(text, os.path.join(scratch, f"pipe-{number}"))]
    _refuse_device(mode, text)
    return [log_file(text, format=format)]


def regular_file(path: str | os.PathLike, scratch: str) -> LogFile:
    """One CSV file that is no log (a policy, a support): a pipe copied into `scratch`, a device refused."""
    text = os.fspath(path)
    try:
        mode = os.stat(text).st_mode
    except (OSError, ValueError):  # the error is raised where the file is opened
        return log_file(text, format="csv")
    if _is_pipe(mode):
        return _pipe(text, os.path.join(scratch, "pipe"))._replace(format="csv")
    _refuse_device(mode, text)
    return log_file(text, format="csv")


def _is_pipe(mode: int) -> bool:
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _refuse_device(mode: int, path: str) -> None:
    """Devices never end."""
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise UserError(f"{shown_path(path)} is a device; give the path of a file, or a pipe.")


def _folder(folder: str, format: str | None) -> list[LogFile]:
    """Files with known endings in a folder and the folders in it; hidden ones and Spark's own (_SUCCESS) left out."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            base, ending = os.path.splitext(name)
            ending = os.path.splitext(base)[1] if ending.lower() in COMPRESSED else ending
            if not name.startswith((".", "_")) and ending.lower() in ENDINGS:
                found.append(log_file(os.path.join(place, name), format=format))
    if not found:
        raise UserError(f"{shown_path(folder)} is a folder without log files; they end in {', '.join(ENDINGS)}.")
    return found


def _pipe(path: str, copy: str) -> LogFile:
    """A pipe, copied into a file, because it can be read only once; the first bytes determine the format."""
    try:
        same_as_stdin = os.path.samestat(os.stat(path), os.fstat(0))
    except OSError:
        same_as_stdin = False
    try:
        with open(copy, "wb") as target:
            if same_as_stdin and not sys.stdin.closed:
                shutil.copyfileobj(os.fdopen(os.dup(0), "rb"), target, 1 << 20)
            else:
                with open(path, "rb") as source:
                    shutil.copyfileobj(source, target, 1 << 20)
    except OSError as error:
        raise UserError(f"{shown_path(path)} cannot be read ({error.strerror or error}).") from None
    with open(copy, "rb") as file:
        start = file.read(4)
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    if kind in ("gzip", "zstd"):
        return LogFile(copy, path, "csv", kind)
    return LogFile(copy, path, kind or ("json" if start.lstrip()[:1] == b"{" else "csv"))


def shown_path(path: str | os.PathLike) -> str:
    """A path as a message shows it: whole, unless it is absurdly long."""
    text = os.fspath(path)
    return text if len(text) <= 400 else shown(text)
