"""Work for a request: in a thread, stopped as soon as its request is gone."""

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bellief.app.workspaces import Workspace
from bellief.errors import UserError
from bellief.watch import Stopped, watched

# Seconds between two checks that the page is still connected, and between two reports of progress.
LOOK, REPORT = 0.1, 0.1

_pool = ThreadPoolExecutor(8, thread_name_prefix="bellief-app")


async def compute(request: Request, workspace: Workspace, kind: str, function: Callable[[], Any]) -> Any:
    """The value of `function`, computed in a thread. Raises `Stopped` where it was stopped.

    Work of a kind replaces the work of the same kind before it; a page that aborts its request stops it; progress goes
    to the page as an event.
    """
    stop = workspace.begin(kind)
    told = [0.0]

    def report(fraction: float) -> None:
        now = time.monotonic()
        if now - told[0] > REPORT:
            told[0] = now
            workspace.tell("progress", {"kind": kind, "fraction": fraction})

    def work() -> Any:
        with watched(stop, report):
            return function()

    future = asyncio.get_running_loop().run_in_executor(_pool, work)
    try:
        await _until_done_or_gone(request, future, stop)
        return await future
    finally:
        if workspace.work.get(kind) is stop:
            del workspace.work[kind]


async def _until_done_or_gone(request: Request, future: asyncio.Future, stop: threading.Event) -> None:
    while not future.done():
        await asyncio.wait({future}, timeout=LOOK)
        if not future.done() and await request.is_disconnected():
            stop.set()
            return


def answer_error(error: Exception, debug: bool = False) -> Response:
    """What went wrong in one sentence. The server's log never gets a message, which may quote the data.

    A mistake of the person is an answer like others (status 200): browsers write other statuses into their console.
    """
    if isinstance(error, UserError):
        return JSONResponse({"error": str(error)})
    if isinstance(error, Stopped):
        return JSONResponse({"error": "Stopped.", "stopped": True})
    if isinstance(error, MemoryError):
        return JSONResponse({"error": "There is not enough memory for this: use a smaller log."}, 500)
    kind = type(error).__name__
    if debug:
        traceback.print_exception(error)
    else:
        print(f"An error ({kind}) was shown on the page; --debug shows where.", file=sys.stderr)
    sentence = f"This is a bug in Bellief ({kind}): please report it with what 'bellief app --debug' prints."
    return JSONResponse({"error": sentence}, 500)
