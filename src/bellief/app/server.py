"""The application: pages, and endpoints that answer in JSON."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bellief.app import endpoints, events
from bellief.app.jobs import answer_error
from bellief.app.security import Access, Guard
from bellief.app.uploads import LARGEST_UPLOAD, TooLarge
from bellief.app.workspaces import Workspaces
from bellief.errors import UserError

HERE = Path(__file__).parent
# Characters of the longest question; uploads are not read as JSON.
LONGEST_QUESTION = 5_000_000


def make_app(
    access: Access,
    workspaces: Workspaces,
    first_log: str | None = None,
    most: int = LARGEST_UPLOAD,
    debug: bool = False,
) -> Starlette:
    """The application. `first_log` is opened by every new tab, `most` the cap of an upload in megabytes."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette):
        yield
        workspaces.close()

    app = Starlette(routes=_routes(), middleware=[Middleware(Guard, access=access)], lifespan=lifespan)
    app.state.workspaces, app.state.first_log = workspaces, first_log
    app.state.most, app.state.debug = most, debug
    return app


def _routes() -> list[Any]:
    base = "/api/w/{workspace}"
    asked = {
        "columns": endpoints.choose_columns,
        "example": endpoints.open_example,
        "check": endpoints.check_log,
        "value": endpoints.value,
        "state": endpoints.state,
        "collect": endpoints.collect,
        "compare": endpoints.compare,
        "improve": endpoints.improve,
        "policy-table": endpoints.policy_table,
        "save-policy": endpoints.save_policy,
        "agents": endpoints.agents,
        "agents-control": endpoints.agents_control,
        "cancel": endpoints.cancel,
    }
    routes: list[Any] = [
        Route("/", _page, methods=["GET"]),
        Route("/favicon.ico", _icon, methods=["GET"]),
        Route("/api/workspaces", _told(_with_question(_new_workspace)), methods=["POST"]),
        Route(f"{base}/first", _told(_with_workspace(endpoints.first_log)), methods=["POST"]),
        Route(f"{base}/log", _told(_with_workspace(endpoints.upload_log)), methods=["POST"]),
        Route(f"{base}/policy", _told(_with_workspace(endpoints.upload_policy)), methods=["POST"]),
        Route(f"{base}/events", _told(_with_workspace(events.stream)), methods=["GET"]),
        Route(f"{base}/files/{{kind}}/{{file}}", _told(_with_workspace(endpoints.download)), methods=["GET"]),
    ]
    routes += [
        Route(f"{base}/{name}", _told(_with_workspace(_with_question(answer))), methods=["POST"])
        for name, answer in asked.items()
    ]
    return [*routes, Mount("/static", _Static(directory=HERE / "static"))]


class _Static(StaticFiles):
    """Bellief's scripts and styles; browsers check whether they have changed."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        answer = super().file_response(*arguments, **options)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


Endpoint = Callable[[Request], Awaitable[Response]]


def _told(endpoint: Endpoint) -> Endpoint:
    """Errors become one sentence, and nothing of them reaches the server's log."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except TooLarge as error:
            # What is left of the upload is not read.
            return JSONResponse({"error": str(error)}, 413, headers={"Connection": "close"})
        except Exception as error:
            return answer_error(error, request.app.state.debug)

    return answered


def _with_workspace(endpoint: Callable[..., Awaitable[Response]]) -> Endpoint:
    async def found(request: Request) -> Response:
        workspace = request.app.state.workspaces.find(request.path_params["workspace"], request.scope["browser"])
        if workspace is None:
            return JSONResponse({"error": "This tab was closed for too long: reload the page.", "gone": True}, 404)
        return await endpoint(request, workspace)

    return found


def _with_question(endpoint: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    """Endpoints that take a JSON object."""

    async def read(request: Request, *workspace: Any) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return JSONResponse({"error": "Questions are asked in JSON."}, 415)
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > LONGEST_QUESTION:
                return JSONResponse({"error": "The question is too long."}, 413, headers={"Connection": "close"})
        try:
            question = json.loads(bytes(body))
        except (ValueError, RecursionError):
            question = None
        if not isinstance(question, dict):
            raise UserError("A question must be a JSON object.")
        return await endpoint(request, *workspace, question)

    return read


async def _page(request: Request) -> Response:
    from bellief.app.pages import render_page

    return HTMLResponse(render_page())


async def _icon(request: Request) -> Response:
    """The icon that browsers request where a page names none."""
    return FileResponse(HERE / "static" / "icon.svg")


async def _new_workspace(request: Request, question: dict[str, Any]) -> Response:
    """A workspace for a tab: the one that it had before it was loaded again, or a new one.

    Browsers copy a tab with what it remembers; the workspace stays with the tab that has it.
    """
    state = request.app.state
    found = state.workspaces.find(str(question.get("resume")), request.scope["browser"])
    for _ in range(20):
        if found is None or not found.connected:
            break
        await asyncio.sleep(0.05)  # the page that is being replaced is about to let go
    if found is None or found.connected:
        found = state.workspaces.create(request.scope["browser"])
    has_log = found.log is not None or state.first_log is not None
    told = {"workspace": found.id, "has_log": has_log, "policies": list(found.policies), "most": state.most}
    return JSONResponse(told)
