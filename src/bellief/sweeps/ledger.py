"""The state of every cell of a sweep, and the manifest that is made from it."""

import os
import time
from typing import Any

from bellief.errors import UserError
from bellief.sweeps.cells import Cell, Setup
from bellief.sweeps.machine import hardware, software
from bellief.sweeps.store import Damaged, Store, now

# Seconds between two manifests: it is an index, and with many cells it is long.
PAUSE = 2.0


class Ledger:
    """The cells of a sweep in their order, each once, with their status: pending, started, finished or failed."""

    def __init__(self, store: Store, setups: list[Setup]):
        self.store, self.setups = store, setups
        self.cells: dict[str, Cell] = {cell.id: cell for setup in setups for cell in setup.cells}
        self.labels: dict[str, dict[str, Any]] = {}
        for setup in setups:
            for cell in setup.cells:
                names = {"environment": setup.environment, "agent": setup.agent, "first": cell.first}
                self.labels.setdefault(cell.id, names)
        self.entries: dict[str, dict[str, Any]] = {}
        self.written = 0.0

    def status(self, cell: str) -> str:
        """One of pending, started, finished, failed."""
        return self.entries.get(cell, {}).get("status", "pending")

    def count(self, status: str) -> int:
        """Number of cells in a state."""
        return sum(self.status(cell) == status for cell in self.cells)

    def scan(self, deep: bool) -> dict[str, str]:
        """Read the state of every cell from its files; returns the damaged ones with the reason. Where `deep`, every
        file is compared with its hash.
        """
        damaged = {}
        for cell in self.cells:
            try:
                record = self.store.check(cell) if deep else self.store.record(cell)
            except Damaged as error:
                damaged[cell] = str(error)
                self.entries[cell] = {"status": "damaged"}
                continue
            if record is not None:
                self.finish(cell, record)
            elif self.status(cell) != "failed":
                self.entries[cell] = {"status": "started" if self.store.has_checkpoint(cell) else "pending"}
        return damaged

    def finish(self, cell: str, record: dict[str, Any]) -> None:
        """Note a finished cell."""
        kept: dict[str, Any] = {name: record[name] for name in ("content", "seconds", "finished") if name in record}
        backend = record["made"][-1].get("backend") if record.get("made") else None
        self.entries[cell] = {"status": "finished", "backend": backend, **kept}

    def write(self, session: dict[str, Any], force: bool = False) -> None:
        """Write the manifest, unless that was done a moment ago."""
        if not force and time.monotonic() - self.written < PAUSE:
            return
        self.written = time.monotonic()
        sessions = self.store.sessions()
        failed, done = self.count("failed"), self.count("finished") == len(self.cells)
        self.store.write_manifest(
            {
                "name": self.store.spec.name,
                "seed": self.store.spec.seed,
                "config": self.store.config_hash(),
                "status": "finished" if done else session["status"],
                "began": min([session["began"], *(one["began"] for one in sessions)]),
                "updated": now(),
                "software": software(),
                "hardware": hardware(),
                "backend": sorted({one["backend"] for one in self.entries.values() if one.get("backend")}),
                "finished": self.count("finished"),
                "failed": failed,
                "cells": {cell: {**self.labels[cell], **self.entries.get(cell, {})} for cell in self.cells},
                "sessions": sessions,
            }
        )


class Session:
    """One session of computing a sweep, recorded at its beginning and at its end."""

    def __init__(self, store: Store, engine: str, shard: tuple[int, int] | None):
        self.store = store
        self.facts: dict[str, Any] = {
            "began": now(),
            "ended": None,
            "status": "running",
            "engine": engine,
            "config": store.config_hash(),
            "shard": None if shard is None else f"{shard[0]}/{shard[1]}",
            "computed": 0,
            "failed": {},
            "software": software(),
            "hardware": hardware(),
        }
        began = self.facts["began"].replace(":", "").replace("+0000", "Z")
        self.name = f"{began}-{os.getpid()}"
        self.write()

    def write(self) -> None:
        """Write it as it stands."""
        self.store.write_session(self.name, self.facts)

    def end(self, status: str) -> None:
        """Write how it ended."""
        self.facts |= {"ended": now(), "status": status}
        self.write()


def read_shard(text: str) -> tuple[int, int]:
    """`2/4` as numbers."""
    first, slash, second = text.partition("/")
    if not (slash and first.isdigit() and second.isdigit() and 1 <= int(first) <= int(second)):
        raise UserError(f"--shard needs a part and the number of parts, for example 2/4, not '{text}'.")
    return int(first), int(second)
