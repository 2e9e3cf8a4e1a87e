"""Workspaces: one for each tab, with its log, its policies, its answers and its running work."""

import asyncio
import dataclasses
import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from bellief.app.answers import Answer
from bellief.app.opened_log import OpenedLog

# Seconds that a workspace waits for its page to come back, which a reload does at once.
PATIENCE = 60.0
MOST_WORKSPACES = 200
# Events that wait for a page; if it does not read them, old ones are dropped.
MOST_EVENTS = 1000


@dataclasses.dataclass(eq=False)
class Workspace:
    """What belongs to one tab."""

    owner: str
    folder: Path
    loop: asyncio.AbstractEventLoop
    id: str = dataclasses.field(default_factory=lambda: secrets.token_urlsafe(18))
    source: tuple[Path, str] | None = None
    log: OpenedLog | None = None
    policies: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    answers: dict[str, Answer] = dataclasses.field(default_factory=dict)
    policy_of_value: Any = None
    work: dict[str, threading.Event] = dataclasses.field(default_factory=dict)
    experiment: Any = None
    events: asyncio.Queue = dataclasses.field(default_factory=lambda: asyncio.Queue(MOST_EVENTS))
    connected: bool = False
    left: float = dataclasses.field(default_factory=time.monotonic)
    files: int = 0

    def new_folder(self) -> Path:
        """A place for one more uploaded file."""
        self.files += 1
        folder = self.folder / str(self.files)
        folder.mkdir(mode=0o700)
        return folder

    def begin(self, kind: str) -> threading.Event:
        """Register work of a kind; running work of the same kind is stopped."""
        self.stop(kind)
        self.work[kind] = threading.Event()
        return self.work[kind]

    def stop(self, kind: str | None = None) -> None:
        """Stop the work of one kind, or all of it."""
        for name, stop in list(self.work.items()):
            if kind in (None, name):
                stop.set()
        if kind in (None, "agents") and self.experiment is not None:
            self.experiment.stop()

    def forget(self) -> None:
        """Discard what belongs to the last log, because a new one is opened. Agents are not affected."""
        for stop in self.work.values():
            stop.set()
        self.log, self.policy_of_value = None, None
        self.policies.clear()
        self.answers.clear()

    def tell(self, event: str, document: Any) -> None:
        """Send something to the page; may be called from any thread."""
        self.loop.call_soon_threadsafe(self._put, (event, document))

    def _put(self, event: tuple[str, Any]) -> None:
        if self.events.full():
            self.events.get_nowait()
        self.events.put_nowait(event)


class Workspaces:
    """All of them, in a private folder that is removed at the end."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bellief-app-"))
        self._all: dict[str, Workspace] = {}

    def create(self, owner: str) -> Workspace:
        """A new workspace of a browser; where there are too many, the oldest one without a page is removed."""
        self.clear_abandoned()
        if len(self._all) >= MOST_WORKSPACES:
            waiting = [one for one in self._all.values() if not one.connected] or list(self._all.values())
            self.remove(min(waiting, key=lambda one: one.left))
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        made = Workspace(owner, folder, asyncio.get_running_loop())
        self._all[made.id] = made
        return made

    def find(self, name: str, owner: str) -> Workspace | None:
        """The workspace, if it is this browser's."""
        found = self._all.get(name)
        return found if found is not None and found.owner == owner else None

    def remove(self, workspace: Workspace) -> None:
        """Stop its work and delete its files."""
        workspace.stop()
        self._all.pop(workspace.id, None)
        shutil.rmtree(workspace.folder, ignore_errors=True)

    def clear_abandoned(self) -> None:
        """Remove the workspaces whose pages have not come back."""
        now = time.monotonic()
        for one in [one for one in self._all.values() if not one.connected and now - one.left > PATIENCE]:
            self.remove(one)

    def close(self) -> None:
        """Remove everything."""
        for one in list(self._all.values()):
            self.remove(one)
        shutil.rmtree(self.folder, ignore_errors=True)
