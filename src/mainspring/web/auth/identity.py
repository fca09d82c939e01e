"""Who sends a request: the actor of a token or of a session's cookie. The first way that knows it answers."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from mainspring.app import Mainspring
from mainspring.model.access import Actor
from mainspring.web.problems import Problem, Unauthorized
from mainspring.web.services import services_of

_IN_ADDRESSES = ("token", "access_token", "api_key")
PLAIN, SECURE, HOST = "mainspring", "__Secure-mainspring", "__Host-mainspring"
_OWN = ("localhost", "127.0.0.1", "::1")


class Identify(Protocol):
    """One way to know who sends a request."""

    async def __call__(self, request: Request) -> Actor | None:
        """The actor, or None where this way does not know the actor. Raises Unauthorized for credentials that
        are there and wrong."""


class ByToken:
    """Looked up for every request: a token that is revoked is gone at once. One that is there and wrong is
    refused, whatever else was sent."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app

    async def __call__(self, request: Request) -> Actor | None:
        for name in _IN_ADDRESSES:
            if name in request.query_params:
                # Addresses are written to logs and histories: one that works there would stay there.
                raise Problem(400, "bad_request", f"{name}: expected in Authorization, not in the address")
        said = request.headers.getlist("authorization")
        if not said:
            return None
        if len(said) > 1:
            raise Problem(400, "bad_request", "authorization: expected one header")
        scheme, _, secret = said[0].strip().partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthorized("authorization: expected Bearer and a token")
        actor = await (await services_of(request).credentials()).token_actor(secret.strip())
        if actor is None:
            raise Unauthorized("this token is not known here, or has ended")
        return actor


class BySession:
    """Looked up for every request. A cookie whose session has ended says nothing of who sends it."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app

    async def __call__(self, request: Request) -> Actor | None:
        cookie = request.cookies.get(cookie_name(request))
        return None if not cookie else await (await services_of(request).credentials()).session_actor(cookie)


def actor_of(request: Request) -> Actor:
    """Who sent a request that its route has let in."""
    actor: Actor = request.state.actor
    return actor


def by_token_or_session(app: Mainspring) -> tuple[Identify, ...]:
    """By a token in `Authorization`, else by the cookie of a session."""
    return ByToken(app), BySession(app)


def is_secure(request: Request) -> bool:
    """Whether the browser came by https: the server, a proxy whose word it takes, or our settings say so."""
    server = getattr(request.app.state.services.app.settings, "server", None)
    return request.url.scheme == "https" or getattr(server, "public_url", "").startswith("https:")


def is_private(request: Request) -> bool:
    """Whether no other machine can read what is sent: https, or a request within this machine."""
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
