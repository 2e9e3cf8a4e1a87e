"""Who may talk to the server: checks of every request, and the headers of every answer.

A page on the web can make a browser send requests to this machine, and can even point a name of its own at 127.0.0.1
(DNS rebinding). So a request must name a host that is ours, must come from our own page where it could change anything,
and must carry the cookie that only the first link, with its random token, gives.
"""

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Nothing from other sites, no inline script or style, no embedding of these pages in others.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
SAFE_METHODS = ("GET", "HEAD")
# A link from elsewhere leads to the entrance; nothing else may be asked for from another site.
ENTRANCE = "/"

REFUSED_PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Bellief</title>
<h1>This page needs its link</h1>
<p>Open the link that <code>bellief app</code> printed in the terminal: it has <code>?token=</code> and letters.</p>
</html>"""
WELCOME_PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Bellief</title>
<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0;url=/">
<p><a href="/">Open Bellief</a></p></html>"""


class Access:
    """What a server answers to: its hosts, its token, and the browsers that have shown it."""

    def __init__(self, hosts: tuple[str, ...], port: int, token: str | None = None, any_address: bool = False):
        self.hosts = {host.lower() for host in hosts}
        self.port, self.any_address = port, any_address
        self.token = token or secrets.token_urlsafe(32)
        # Cookies are shared between the ports of a host, so each server has a name of its own.
        self.cookie = f"bellief_{port}"
        self._browsers: set[str] = set()

    def admit(self) -> str:
        """The cookie of one more browser."""
        browser = secrets.token_urlsafe(32)
        self._browsers.add(browser)
        return browser

    def knows(self, browser: str) -> bool:
        """Whether this server issued a cookie."""
        return any(hmac.compare_digest(browser.encode(), known.encode()) for known in self._browsers)

    def has_token(self, given: str) -> bool:
        """Whether a token is that of this server."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def serves(self, host: str | None) -> bool:
        """Whether a Host header names this server: one of its names, or any address where it listens to all.

        An address written in digits needs no DNS, and so cannot be a rebound name.
        """
        if host is None:
            return False
        name, port = _split_host(host)
        if port != self.port:
            return False
        return name in self.hosts or (self.any_address and _is_address(name))


def _split_host(host: str) -> tuple[str, int | None]:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower(), 80
    return name.lower(), int(port) if port.isascii() and port.isdecimal() else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    """The checks, around an application. The browser's cookie is in `scope["browser"]` for what follows."""

    def __init__(self, app: Any, access: Access):
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refused = self.check(scope)
        if refused is None:
            await self.app(scope, receive, send_guarded)
        else:
            await refused(scope, receive, send_guarded)

    def check(self, scope: Scope) -> Response | None:
        """A refusal or the welcome; None where the request may pass."""
        headers, access = Headers(scope=scope), self.access
        host, method, path = headers.get("host"), scope["method"], scope["path"]
        if len(headers.getlist("host")) != 1 or not access.serves(host):
            return refuse(421, "This server does not go by that name: open the link that bellief app printed.")
        origin = headers.get("origin")
        if (origin is None and method not in SAFE_METHODS) or (origin is not None and origin != f"http://{host}"):
            return refuse(403, "Refused: the request comes from another site.")
        entering = path == ENTRANCE and method == "GET" and headers.get("sec-fetch-dest", "document") == "document"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not entering:
            return refuse(403, "Refused: the request comes from another site.")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        browser = cookie_parser(headers.get("cookie", "")).get(access.cookie, "")
        known = access.knows(browser)
        if entering and given is not None:
            return self._welcome(given[0], known)
        if not known:
            if entering:
                return HTMLResponse(REFUSED_PAGE, 403)
            return refuse(403, "This page has lost its key: open the link that bellief app printed.")
        scope["browser"] = browser
        return None

    def _welcome(self, token: str, known: bool) -> Response:
        """The cookie, and a page that goes on to the real one, so that the token leaves the address bar.

        Not a redirect: after a click on another site, browsers would not send a strict cookie with it. A browser that
        is known already keeps its cookie, and with it the workspaces of its other tabs.
        """
        if not self.access.has_token(token):
            return HTMLResponse(REFUSED_PAGE, 403)
        answer = HTMLResponse(WELCOME_PAGE)
        if not known:
            answer.set_cookie(self.access.cookie, self.access.admit(), httponly=True, samesite="strict", path="/")
        return answer


def refuse(status: int, sentence: str) -> JSONResponse:
    """A refusal in one sentence."""
    return JSONResponse({"error": sentence}, status)
