"""Server-sent events: progress and what agents do, to one tab. The open stream also says that the tab is there."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bellief.app.workspaces import Workspace

# Seconds between two signs of life; some proxies close what is silent.
HEARTBEAT = 10.0


async def stream(request: Request, workspace: Workspace) -> Response:
    """The events of a workspace; only one tab may have them."""
    if workspace.connected:
        return JSONResponse({"error": "This workspace belongs to another tab.", "taken": True}, 409)
    workspace.connected = True
    return _Stream(workspace)


class _Stream(Response):
    """Ends as soon as the page is gone, and then stops the work of the workspace."""

    def __init__(self, workspace: Workspace):
        super().__init__(media_type="text/event-stream")
        self.workspace = workspace
        del self.headers["content-length"]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        pump = asyncio.ensure_future(self._pump(send))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            pump.cancel()
            self.workspace.connected, self.workspace.left = False, time.monotonic()
            self.workspace.stop()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await pump

    async def _pump(self, send: Any) -> None:
        await asyncio.sleep(0)  # the head of the answer goes first
        async for text in _lines(self.workspace.events):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _lines(queue: asyncio.Queue) -> AsyncIterator[str]:
    yield ": here\n\n"
    while True:
        try:
            name, document = await asyncio.wait_for(queue.get(), HEARTBEAT)
            yield f"event: {name}\ndata: {json.dumps(document)}\n\n"
        except TimeoutError:
            yield ": still here\n\n"
