"""A progress bar on standard error: only in a terminal, and only after some seconds."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

# Seconds before the bar appears.
PATIENCE = 2.0


@contextlib.contextmanager
def progress(description: str, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Yields a function to call with the finished fraction; until the first call the bar shows activity only."""
    if quiet or not sys.stderr.isatty():
        yield lambda fraction: None
        return
    from rich import progress as bars
    from rich.console import Console

    bar = bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(description, total=None)
    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda fraction: bar.update(task, total=1.0, completed=fraction)
    finally:
        timer.cancel()
        # Wait for a bar that is just starting: it cannot be stopped before.
        timer.join()
        bar.stop()
