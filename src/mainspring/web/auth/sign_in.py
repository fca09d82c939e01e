"""`/login` and `/logout`: a browser comes in with a token, or through an OpenID provider, and goes."""

from __future__ import annotations

import math
from collections import OrderedDict
from datetime import timedelta
from typing import Annotated

from fastapi import Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mainspring.admin.access import HINT
from mainspring.clock import Clock
from mainspring.model.access import AccessRole, Actor
from mainspring.web.auth.identity import clear_cookie, is_private, set_cookie
from mainspring.web.auth.policy import GuardedRoute, Routes
from mainspring.web.rendering import page
from mainspring.web.services import Services, TheServices, address_of, services_of

ACT = "access.sign_in"
WRONG = "This token is not known here, or has ended."
UNSAFE = "Sign in over https, or at localhost: on the way here others could read along."
LONGEST = 2000
routes = Routes("access", GuardedRoute, include_in_schema=False)
Text = Annotated[str, Form(max_length=LONGEST)]
ALLOWED = 10
LOCKED_FOR = timedelta(minutes=1)
FORGOTTEN_AFTER = timedelta(minutes=10)
"""Without a wrong one for so long, the count begins anew."""
MOST = 10_000
"""Addresses and accounts that are remembered; the one not heard of for longest goes first."""


class Attempts:
    """Kept in this process: of several servers, each counts its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, *keys: str) -> timedelta:
        """How long the next attempt under one of these keys must wait; zero for not at all."""
        left = max((self._left(key) for key in keys), default=0.0)
        return timedelta(seconds=left)

    def failed(self, *keys: str) -> None:
        """One more that was wrong."""
        now = self._clock.monotonic()
        for key in keys:
            count, last = self._wrong.pop(key, (0, now))
            row = count if now - last < FORGOTTEN_AFTER.total_seconds() else 0
            self._wrong[key] = row + 1, now
            if len(self._wrong) > MOST:
                self._wrong.popitem(last=False)

    def succeeded(self, *keys: str) -> None:
        """One that was right: the row has ended."""
        for key in keys:
            self._wrong.pop(key, None)

    def _left(self, key: str) -> float:
        count, last = self._wrong.get(key, (0, 0.0))
        if count < ALLOWED:
            return 0.0
        return max(0.0, last + LOCKED_FOR.total_seconds() - self._clock.monotonic())


@routes.get("/login", role=None)
async def login_page(
    request: Request, services: TheServices, next: Annotated[str, Query(max_length=LONGEST)] = ""
) -> Response:
    """The page to sign in at."""
    return login_answer(request, services, goes_to=next)


@routes.post("/login", role=None, order=ACT)
async def login(request: Request, services: TheServices, token: Text = "", next: Text = "") -> Response:
    """Come in with a token. The session is a new one, whatever cookie was sent along. After too many wrong
    ones only a right one comes in: behind one address may be many people, and 256 bits are not guessed."""
    token, address = token.strip(), address_of(request)
    attempts = attempts_of(request)
    keys = (f"address {address}", f"account {token[:HINT]}")
    private = is_private(request)
    actor = await (await services.credentials()).token_actor(token) if private else None
    wait = attempts.wait(*keys)
    if wait and actor is None:
        # Nor is it put on record: there is no end to what can be tried.
        seconds = math.ceil(wait.total_seconds())
        return login_answer(
            request,
            services,
            next,
            f"Too many attempts. Try again in {seconds} s.",
            429,
            {"Retry-After": str(seconds)},
        )
    if not private:
        return login_answer(request, services, next, UNSAFE, 403)
    if actor is None:
        attempts.failed(*keys)
        unknown = Actor(name="(unknown)", role=AccessRole.VIEWER, via="sign-in")
        await (await services.recorder()).refused(unknown, ACT, details={"why": "wrong"}, address=address)
        return login_answer(request, services, next, WRONG, 401)
    # Only the account's: with a token of its own a caller could otherwise try those of others without end.
    attempts.succeeded(keys[1])
    return await enter(request, actor, next)


@routes.post("/logout", role=None, order="access.sign_out")
async def logout(request: Request, services: TheServices) -> Response:
    """Go. The session has ended when this answers."""
    actor: Actor | None = request.state.actor
    if actor is not None and actor.session_id is not None:
        async with services.admin(actor, address_of(request)).context.recorded("access.sign_out"):
            await _end(services, actor.session_id)
    response = RedirectResponse(f"{_base(request)}/login", 303)
    clear_cookie(request, response)
    return response


async def enter(request: Request, actor: Actor, goes_to: str) -> Response:
    """Open a session for a user who has been identified, and redirect to the page that was asked for."""
    services = services_of(request)
    before: Actor | None = getattr(request.state, "actor", None)
    async with services.admin(actor, address_of(request)).context.recorded(ACT, details={"via": actor.via}):
        if before is not None and before.session_id is not None:
            await _end(services, before.session_id)
        cookie = await (await services.credentials()).sign_in(actor)
    response = RedirectResponse(safe_path(request, goes_to), 303)
    set_cookie(request, response, cookie)
    return response


def attempts_of(request: Request) -> Attempts:
    """The server's count of wrong attempts."""
    state = request.app.state
    if not hasattr(state, "attempts"):
        state.attempts = Attempts(state.services.clock)
    attempts: Attempts = state.attempts
    return attempts


def safe_path(request: Request, goes_to: str) -> str:
    """The path, if it is one of ours; else where everybody begins. Never another site."""
    base = _base(request)
    ours = goes_to.startswith(f"{base}/") and not goes_to.startswith(("//", "/\\"))
    plain = goes_to.isascii() and goes_to.isprintable() and "\\" not in goes_to
    return goes_to if ours and plain and not goes_to.startswith(f"{base}/login") else f"{base}/"


def login_answer(
    request: Request,
    services: Services,
    goes_to: str,
    problem: str = "",
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """The page to sign in at, with what stood against it."""
    answer = page(
        request,
        "login.html",
        status=status,
        problem=problem,
        goes_to=goes_to,
        provider=bool(services.app.settings.access.oidc_issuer),
    )
    answer.headers.update({"Cache-Control": "no-store", **(headers or {})})
    return answer


async def _end(services: Services, session_id: int) -> None:
    await (await services.credentials()).sign_out(session_id)


def _base(request: Request) -> str:
    base: str = request.scope.get("root_path", "")
    return base
