"""Who is signed in: a cookie that says nothing by itself, and a session that can be ended at any moment."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from mainspring.app import Mainspring
from mainspring.model.access import Actor
from mainspring.web.desk import desk_of

PLAIN, SECURE, HOST = "mainspring", "__Secure-mainspring", "__Host-mainspring"
_OWN = ("localhost", "127.0.0.1", "::1")


class SessionWay:
    """Looked up for every request. A cookie whose session has ended says nothing of who sends it."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app

    async def __call__(self, request: Request) -> Actor | None:
        cookie = request.cookies.get(cookie_name(request))
        return None if not cookie else await (await desk_of(request).credentials()).session_actor(cookie)


def is_secure(request: Request) -> bool:
    """Whether the browser came by https: the server, a proxy whose word it takes, or our settings say so."""
    server = getattr(request.app.state.desk.app.settings, "server", None)
    return request.url.scheme == "https" or getattr(server, "public_url", "").startswith("https:")


def is_private(request: Request) -> bool:
    """Whether nobody on the way can read what is sent: https, or within one machine."""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    return is_secure(request) or host in _OWN or host.endswith(".localhost")


def cookie_name(request: Request) -> str:
    """Under https a name that browsers take only with Secure; where the whole host is ours also only for it,
    so that no neighbour under another name can set it."""
    if not is_secure(request):
        return PLAIN
    return SECURE if request.scope.get("root_path") else HOST


def set_cookie(request: Request, response: Response, cookie: str) -> None:
    """Give the browser its session. It ends with the browser, or when the session does."""
    # Lax and not Strict: with Strict, who follows a link from elsewhere seems not to be signed in. Orders are
    # guarded by where they come from (csrf.py).
    name, path, secure = cookie_name(request), _path(request), is_secure(request)
    response.set_cookie(name, cookie, path=path, secure=secure, httponly=True, samesite="lax")


def clear_cookie(request: Request, response: Response) -> None:
    """Take it back."""
    name, path, secure = cookie_name(request), _path(request), is_secure(request)
    response.delete_cookie(name, path=path, secure=secure, httponly=True, samesite="lax")


def _path(request: Request) -> str:
    return request.scope.get("root_path") or "/"
