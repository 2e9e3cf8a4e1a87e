"""What a sweep shows while it works: a table in a terminal, plain lines elsewhere, or one JSON event a line."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from bellief.errors import UserError

Event = dict[str, Any]
# Seconds between two plain lines about how far the sweep is.
LINE_PAUSE = 10.0
LONGEST_TABLE = 30


@contextlib.contextmanager
def show_sweep(as_json: bool, quiet: bool, tensorboard: Path | None) -> Iterator[Callable[[Event], None]]:
    """Yields the function that is called with every event."""
    listeners: list[Callable[[Event], None]] = []
    with contextlib.ExitStack() as stack:
        if as_json:
            listeners.append(JsonLines(sys.stdout))
        elif not quiet and sys.stderr.isatty():
            listeners.append(stack.enter_context(_live_table()))
        else:
            listeners.append(PlainLines(quiet))
        if tensorboard is not None:
            listeners.append(stack.enter_context(contextlib.closing(TensorBoard(tensorboard))))

        def tell(event: Event) -> None:
            for listener in listeners:
                listener(event)

        yield tell


class JsonLines:
    """One event a line, on the standard output of the start of the program."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def __call__(self, event: Event) -> None:
        """One event, without what only the displays need."""
        public = {key: value for key, value in event.items() if key not in ("made", "mine", "done")}
        self.stream.write(json.dumps(public) + "\n")
        self.stream.flush()


class State:
    """Progress of a sweep from its events: the finished share of each cell, rewards, and remaining time."""

    def __init__(self) -> None:
        self.rows: list[Event] = []
        self.fraction: dict[str, float] = {}
        self.reward: dict[str, float] = {}
        self.mine: set[str] = set()
        self.began, self.before = time.monotonic(), 0.0

    def __call__(self, event: Event) -> None:
        """One event."""
        cell = event.get("cell")
        match event["kind"]:
            case "sweep":
                self.rows, self.mine = event["setups"], set(event["mine"])
                self.fraction = dict.fromkeys(event["done"], 1.0)
                self.began, self.before = time.monotonic(), float(len(event["done"]))
            case "progress" if cell:
                self.fraction[cell] = event["step"] / event["steps"]
                self._note(cell, event)
            case "finished" if cell:
                self.fraction[cell] = 1.0
                self._note(cell, event)

    def _note(self, cell: str, event: Event) -> None:
        if event["reward"] is not None:
            self.reward[cell] = event["reward"]

    def done(self, cells: list[str]) -> float:
        """How many of these cells are done, with parts."""
        return sum(self.fraction.get(cell, 0.0) for cell in cells)

    def rate(self) -> float:
        """Cells a second, since this go at the sweep began."""
        return (self.done(list(self.mine)) - self.before) / max(time.monotonic() - self.began, 1e-9)

    def left(self) -> float | None:
        """Seconds that are left at this rate."""
        rate = self.rate()
        return (len(self.mine) - self.done(list(self.mine))) / rate if rate > 0 else None


class PlainLines:
    """Lines on standard error, for logs: notes and failures always, finished cells and how far it is unless quiet."""

    def __init__(self, quiet: bool):
        self.quiet, self.state, self.told = quiet, State(), time.monotonic()

    def __call__(self, event: Event) -> None:
        """One event."""
        self.state(event)
        kind = event["kind"]
        if kind in ("note", "failed", "lost", "restarted"):
            self._say(_sentence(event))
        elif self.quiet:
            return
        elif kind == "sweep":
            self._say(f"{event['folder']}: {event['cells']} cells, {event['finished']} finished already")
        elif kind == "finished":
            reward = f", reward {event['reward']:.4g} a step" if event["reward"] is not None else ""
            self._say(f"finished {_name(event)} in {event['seconds']:.1f} s{reward}; {self._standing()}")
        elif kind == "progress" and time.monotonic() - self.told > LINE_PAUSE:
            self._say(f"{_name(event)} at step {event['step']} of {event['steps']}; {self._standing()}")

    def _standing(self) -> str:
        cells = list(self.state.mine)
        left = self.state.left()
        return f"{self.state.done(cells):.1f} of {len(cells)} cells" + (
            "" if left is None else f", {_clock(left)} left"
        )

    def _say(self, text: str) -> None:
        self.told = time.monotonic()
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _live_table() -> Iterator[Callable[[Event], None]]:
    from rich.console import Console
    from rich.live import Live

    state, console = State(), Console(stderr=True)
    with Live(console=console, refresh_per_second=4, transient=True, get_renderable=lambda: _table(state)):

        def tell(event: Event) -> None:
            state(event)
            if event["kind"] in ("note", "failed", "lost", "restarted"):
                console.print(_sentence(event), markup=False, highlight=False)

        yield tell


def _table(state: State) -> Any:
    """One row per condition; the busy ones first where there are too many."""
    from rich import box
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    left = state.left()
    remaining = "" if left is None else f", {_clock(left)} left"
    title = (
        f"{state.done(list(state.mine)):.1f} of {len(state.mine)} cells, {60 * state.rate():.3g} a minute{remaining}"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=title, caption_justify="left")
    for column in ("environment", "agent"):
        table.add_column(column, overflow="ellipsis", no_wrap=True)
    table.add_column("", width=24)
    for column in ("cells", "reward a step"):
        table.add_column(column, justify="right", no_wrap=True)
    rows = [(row, [cell for cell in row["cells"] if cell in state.mine]) for row in state.rows]
    rows.sort(key=lambda pair: not 0 < state.done(pair[1]) < len(pair[1]))
    for row, cells in rows[:LONGEST_TABLE]:
        rewards = [state.reward[cell] for cell in cells if cell in state.reward]
        reward = f"{sum(rewards) / len(rewards):.4g}" if rewards else ""
        bar = ProgressBar(total=max(len(cells), 1), completed=state.done(cells), width=24)
        table.add_row(row["environment"], row["agent"], bar, f"{state.done(cells):.1f} / {len(cells)}", reward)
    if len(rows) > LONGEST_TABLE:
        table.add_row(f"and {len(rows) - LONGEST_TABLE} more", "", "", "", "")
    return table


class TensorBoard:
    """Rewards over steps for TensorBoard, one run for each cell."""

    def __init__(self, folder: Path):
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise UserError(
                "--tensorboard needs tensorboardX: install it with pip install 'bellief[tensorboard]'."
            ) from error
        self.folder, self.make = folder, SummaryWriter
        self.writers: dict[str, Any] = {}

    def __call__(self, event: Event) -> None:
        """One event."""
        if event["kind"] not in ("progress", "finished") or event.get("reward") is None:
            return
        cell = event["cell"]
        if cell not in self.writers:
            # The cell's number keeps labels, whatever is in them, out of the file system.
            self.writers[cell] = self.make(str(self.folder / cell))
            self.writers[cell].add_text("cell", _name(event))
        steps = event.get("step", event.get("steps"))
        if steps is not None:
            self.writers[cell].add_scalar("reward_per_step", event["reward"], steps)
        if event["kind"] == "finished":
            self.writers.pop(cell).close()

    def close(self) -> None:
        """Write everything."""
        for writer in self.writers.values():
            writer.close()


def _name(event: Event) -> str:
    return f"{event['agent']} in {event['environment']}, runs {event['first']} to {event['first'] + 9}"


def _sentence(event: Event) -> str:
    if event["kind"] == "note":
        return event["text"]
    ends = {"failed": "failed", "lost": "is given to another worker", "restarted": "begins again"}
    return f"{_name(event)}, {ends[event['kind']]}: {event['reason'].rstrip('.')}."


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
