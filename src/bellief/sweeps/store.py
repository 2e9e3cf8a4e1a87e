"""The store: one folder for a sweep, written so that it can be cut off at any moment.

    config.yaml     the resolved spec
    manifest.json   an index for people and programs, rebuilt from what follows
    metrics/        the numbers: Parquet files of each finished cell
    cells/          a record for each finished cell, with the hashes of its files; written last, so it says "finished"
    checkpoints/    unfinished cells
    sessions/       who computed, when, on what
    quarantine/     damaged cells, set aside

Every file is written whole or not at all, and what is finished is never written again.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from bellief.errors import UserError
from bellief.files import PART, sync_folder, write_whole
from bellief.sweeps.cells import Cell, canonical, cell_id, same_work
from bellief.sweeps.machine import software
from bellief.sweeps.spec import Spec, build_spec, parse_yaml

FORMAT = 1
FOLDERS = ("metrics", "cells", "checkpoints", "sessions", "quarantine")
# The tables that every cell has.
REQUIRED = {"curves"}
# Bytes: larger files are nothing that Bellief wrote, and are not read. A manifest has some 300 for each of a million
# cells.
LARGEST_CONFIG, LARGEST_RECORD, LARGEST_MANIFEST = 4_000_000, 16_000_000, 1_000_000_000


class Damaged(Exception):
    """Something in the store is not what it was when it was written."""


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Store:
    """A sweep's folder. Reading needs no lock; writing does."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.spec = self._read_config()

    @classmethod
    def create(cls, folder: str | Path, spec: Spec) -> "Store":
        """Make the folder, or open it again for the same spec."""
        folder = Path(folder)
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if "config.yaml" in names:
            store = cls(folder)
            if store.spec != spec and not same_work(store.spec, spec):
                raise UserError(f"{folder} holds another sweep ({_difference(store.spec, spec)}); choose another name.")
            return store
        # Hidden files may be those of another shard that is just making the same folder.
        if any(not name.startswith(".") for name in names) or (os.path.lexists(folder) and not folder.is_dir()):
            raise UserError(f"{folder} exists and is no store of a sweep; choose another name, or move it away.")
        folder.mkdir(parents=True, exist_ok=True)
        head = {"format": FORMAT, "bellief": software()["bellief"], "sweep": spec.model_dump()}
        write_whole(folder / "config.yaml", yaml.safe_dump(head, sort_keys=False, allow_unicode=True).encode())
        return cls(folder)

    def _read_config(self) -> Spec:
        path = self.folder / "config.yaml"
        try:
            text = _read_limited(path, LARGEST_CONFIG).decode()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UserError(f"{self.folder} is no store of a sweep: it has no config.yaml.") from error
        except (UnicodeDecodeError, Damaged) as error:
            raise UserError(f"{path} is damaged; put the sweep's own description back.") from error
        head = parse_yaml(text, str(path))
        if not isinstance(head, dict) or not isinstance(head.get("format"), int) or "sweep" not in head:
            raise UserError(f"{path} is not the configuration of a sweep, or is damaged; put the right one back.")
        if head["format"] > FORMAT:
            newer = str(head.get("bellief"))[:40]
            raise UserError(f"{path} was written by a newer Bellief ({newer}); update Bellief to read it.")
        return build_spec(head["sweep"], str(path))

    def config_hash(self) -> str:
        """A hash of what config.yaml says, however it is laid out; labels are part of it."""
        return _sha(canonical(self.spec.model_dump(exclude_defaults=True)).encode())

    def prepare(self, alone: bool) -> None:
        """Make the folders; where no other process is writing, remove what a killed process left half-written."""
        for name in FOLDERS:
            (self.folder / name).mkdir(exist_ok=True)
        for name in ("", *FOLDERS) if alone else ():
            for part in (self.folder / name).glob(f".*{PART}"):
                part.unlink(missing_ok=True)

    # Cells

    def _files(self, cell: str) -> dict[str, Path]:
        """All files that belong to a finished cell."""
        found = {path.name.removesuffix(".parquet"): path for path in (self.folder / "metrics").glob(f"{cell}.*")}
        return {**found, "record": self.folder / "cells" / f"{cell}.json"}

    def table_path(self, cell: str, table: str) -> Path:
        """Where a table of a cell is."""
        return self.folder / "metrics" / f"{cell}.{table}.parquet"

    def commit(self, cell: Cell, tables: dict[str, bytes], content: str, **facts: Any) -> dict[str, Any]:
        """Write a finished cell: first its tables, then the record, which is what makes it finished."""
        for name, table in tables.items():
            write_whole(self.table_path(cell.id, name), table, sync=False)
        sync_folder(self.folder / "metrics")
        files = {name: {"sha256": _sha(table), "bytes": len(table)} for name, table in tables.items()}
        record = {
            "format": FORMAT,
            "id": cell.id,
            "identity": cell.identity,
            "content": content,
            "files": files,
            "finished": now(),
            **facts,
        }
        write_whole(self.folder / "cells" / f"{cell.id}.json", _seal(record))
        self.drop_checkpoint(cell.id)
        return record

    def record(self, cell: str) -> dict[str, Any] | None:
        """A finished cell's record, nothing where there is none; `Damaged` where it cannot be trusted."""
        path = self.folder / "cells" / f"{cell}.json"
        try:
            record = _unseal(_read_limited(path, LARGEST_RECORD))
        except FileNotFoundError:
            return None
        if isinstance(record.get("format"), int) and record["format"] > FORMAT:
            raise UserError(f"{path} was written by a newer Bellief; update Bellief to read it.")
        _check_record(record)
        if record["id"] != cell or cell_id(record["identity"]) != cell:
            raise Damaged("its record belongs to another cell")
        return record

    def other_records(self, cells: Iterable[str]) -> int:
        """Number of records that belong to none of these cells."""
        return len({path.stem for path in (self.folder / "cells").glob("*.json")} - set(cells))

    def read(self, cell: str, table: str) -> bytes:
        """A table's file, checked against the record; `Damaged` where it is not what was written."""
        record = self.record(cell)
        if record is None:
            raise Damaged("it is not finished")
        return self._read_checked(record, table)

    def _read_checked(self, record: dict[str, Any], table: str) -> bytes:
        if table not in record["files"]:
            raise Damaged(f"it has no {table}")
        path, written = self.table_path(record["id"], table), record["files"][table]
        try:
            content = path.read_bytes() if path.stat().st_size == written["bytes"] else b""
        except FileNotFoundError as error:
            raise Damaged(f"its {table} are missing") from error
        if _sha(content) != written["sha256"]:
            raise Damaged(f"its {table} are not what was written")
        return content

    def check(self, cell: str) -> dict[str, Any] | None:
        """The record of a finished cell after every file was compared with it; nothing where it is not finished."""
        record = self.record(cell)
        if record is not None:
            for table in record["files"]:
                self._read_checked(record, table)
        return record

    def adopt(self, other: "Store", cell: str) -> dict[str, Any] | None:
        """Take a finished cell over from another store, if it is there and whole; returns its record."""
        try:
            record = other.check(cell)
        except Damaged:
            return None
        if record is not None:
            for table in record["files"]:
                write_whole(self.table_path(cell, table), other._read_checked(record, table), sync=False)
            sync_folder(self.folder / "metrics")
            write_whole(self.folder / "cells" / f"{cell}.json", _seal(record))
            self.drop_checkpoint(cell)
        return record

    def set_aside(self, cell: str, reason: str) -> Path:
        """Move a damaged cell's files into the quarantine."""
        number = sum(1 for _ in (self.folder / "quarantine").glob(f"{cell}-*"))
        target = self.folder / "quarantine" / f"{cell}-{number + 1}"
        target.mkdir()
        write_whole(target / "reason.txt", f"{now()} {reason}\n".encode())
        files = self._files(cell)
        # The record is moved first: without it the cell is not finished, even if the process is killed next.
        for name in ["record", *(name for name in files if name != "record")]:
            if files[name].exists():
                shutil.move(files[name], target / files[name].name)
        return target

    # Checkpoints

    def _checkpoint(self, cell: str) -> Path:
        return self.folder / "checkpoints" / f"{cell}.npz"

    def has_checkpoint(self, cell: str) -> bool:
        """Whether a cell was begun."""
        return self._checkpoint(cell).exists()

    def read_checkpoint(self, cell: str) -> bytes | None:
        """The last checkpoint of a cell, if it was begun."""
        try:
            return self._checkpoint(cell).read_bytes()
        except FileNotFoundError:
            return None

    def write_checkpoint(self, cell: str, content: bytes) -> None:
        """Keep a checkpoint in place of the one before."""
        write_whole(self._checkpoint(cell), content)

    def drop_checkpoint(self, cell: str) -> None:
        """A finished cell needs none."""
        self._checkpoint(cell).unlink(missing_ok=True)

    # Sessions and manifest

    def write_session(self, name: str, session: dict[str, Any]) -> None:
        """Who computes, when, on what; written again at the end."""
        write_whole(self.folder / "sessions" / f"{name}.json", _seal(session))

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions, the oldest first; what cannot be read is left out."""
        found = [session for session in self.read_sessions().values() if session is not None]
        return sorted(found, key=lambda session: session["began"])

    def read_sessions(self) -> dict[str, dict[str, Any] | None]:
        """Every session by the name of its file; nothing in place of one that cannot be read."""
        found: dict[str, dict[str, Any] | None] = {}
        for path in sorted((self.folder / "sessions").glob("*.json")):
            try:
                session = _unseal(_read_limited(path, LARGEST_RECORD))
                whole = isinstance(session.get("began"), str) and isinstance(session.get("software"), dict)
                found[path.name] = session if whole else None
            except (Damaged, OSError):
                found[path.name] = None
        return found

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """The index; everything in it is also in the files it is made from."""
        write_whole(self.folder / "manifest.json", _seal({"format": FORMAT, **manifest}, indent=1))

    def read_manifest(self) -> dict[str, Any] | None:
        """The index, nothing where there is none yet, `Damaged` where it was changed."""
        try:
            return _unseal(_read_limited(self.folder / "manifest.json", LARGEST_MANIFEST))
        except FileNotFoundError:
            return None


def _read_limited(path: Path, most: int) -> bytes:
    """A file, unless it is larger than anything Bellief writes there."""
    with open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise Damaged(f"it is larger than {most} bytes")
    return content


def _check_record(record: dict[str, Any]) -> None:
    """A record may carry the right hash of itself and still be nothing that Bellief wrote."""
    files = record.get("files")
    whole = (
        isinstance(record.get("id"), str)
        and isinstance(record.get("identity"), dict)
        and isinstance(record.get("content"), str)
        and isinstance(record.get("finished"), str)
        and isinstance(files, dict)
        and set(files) >= REQUIRED
        and all(re.fullmatch(r"[a-z]{1,20}", name) for name in files)
        and all(isinstance(file, dict) and {"sha256", "bytes"} <= set(file) for file in files.values())
        and isinstance(record.get("seconds", 0.0), int | float)
        and isinstance(record.get("made", []), list)
        and all(isinstance(made, dict) for made in record.get("made", []))
    )
    if not whole:
        raise Damaged("its record is not one that Bellief wrote")


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _seal(document: dict[str, Any], indent: int | None = None) -> bytes:
    """JSON that carries a hash of itself."""
    sealed = {**document, "sha256": _sha(canonical(document).encode())}
    return json.dumps(sealed, indent=indent, allow_nan=False).encode() + b"\n"


def _unseal(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
        seal = document.pop("sha256")
        whole = isinstance(document, dict) and _sha(canonical(document).encode()) == seal
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError, MemoryError) as error:
        raise Damaged("it cannot be read") from error
    if not whole:
        raise Damaged("it was changed after it was written")
    return document


def _difference(old: Spec, new: Spec) -> str:
    before, after = old.model_dump(), new.model_dump()
    name = next((name for name in before if before[name] != after[name]), "the whole")
    return f"it differs in '{name}'"
