"""`/login/oidc`: a browser comes in through an OpenID provider. Authorization code, PKCE, state and nonce."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, NamedTuple

from fastapi import Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mainspring.model.access import AccessRole, Actor
from mainspring.web.access.claims import ClaimRefused, NoRole, judged
from mainspring.web.access.provider import Provider, ProviderAway, require_packages
from mainspring.web.access.sessions import is_private, is_secure
from mainspring.web.access.signin import ACT, LONGEST, UNSAFE, enter, login_answer, safe_path
from mainspring.web.desk import AtDesk, Desk, address_of
from mainspring.web.guarded import GuardedRoute
from mainspring.web.problems import Problem
from mainspring.web.routes import Routes

AWAY = "The provider does not answer as it should. Try again, or sign in with a token."
REFUSED = "The provider's answer does not let you in. Try again from the beginning."
NO_ROLE = "You are known, but nobody has given you a role here."
FOR = 600
"""Seconds that somebody may take at the provider."""
routes = Routes("access", GuardedRoute, prefix="/login/oidc", include_in_schema=False)
Said = Annotated[str, Query(max_length=LONGEST)]


class Journey(NamedTuple):
    """One browser's way to the provider and back. All follows from one secret, which its cookie keeps:
    `state` shows that the same browser came back, `nonce` that the token answers it, `verifier` that the
    code is ours."""

    secret: str
    goes_to: str

    @property
    def state(self) -> str:
        return self._derived("state")

    @property
    def nonce(self) -> str:
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        return self._derived("verifier")

    def cookie(self) -> str:
        """As the browser keeps it."""
        return f"{self.secret}.{_written(self.goes_to.encode())}"

    def _derived(self, what: str) -> str:
        return _written(hmac.digest(self.secret.encode(), what.encode(), hashlib.sha256))


@routes.get("", role=None)
async def leave(request: Request, desk: AtDesk, next: Said = "") -> Response:
    """Go to the provider."""
    provider = provider_of(request)
    if not is_private(request):
        return login_answer(request, desk, next, UNSAFE, 403)
    journey = Journey(_written(desk.app._entropy.secret()), safe_path(request, next))
    try:
        url = await provider.authorization_url(
            state=journey.state, nonce=journey.nonce, verifier=journey.verifier
        )
    except ProviderAway:
        return login_answer(request, desk, next, AWAY, 503)
    response = RedirectResponse(url, 303)
    path, secure = _path(request), is_secure(request)
    response.set_cookie(
        _name(request), journey.cookie(), max_age=FOR, path=path, secure=secure, httponly=True, samesite="lax"
    )
    return response


@routes.get("/back", role=None)
async def come_back(
    request: Request, desk: AtDesk, code: Said = "", state: Said = "", error: Said = "", iss: Said = ""
) -> Response:
    """Come back from the provider, and in."""
    provider = provider_of(request)
    try:
        journey = _journey(request, state)
        if error or not code:
            raise ClaimRefused("the provider said no")
        if iss and iss != desk.app.settings.access.oidc_issuer:
            raise ClaimRefused("iss: another provider answers")
        claims = await provider.claims(code, verifier=journey.verifier)
        actor = judged(claims, desk.app.settings.access, nonce=journey.nonce, now=desk.clock.now())
    except ProviderAway:
        return _cleared(request, login_answer(request, desk, "", AWAY, 503))
    except ClaimRefused as refused:
        nobody = Actor(name="(unknown)", role=AccessRole.VIEWER, via="oidc")
        recorder = await desk.recorder()
        await recorder.refused(nobody, ACT, details={"why": str(refused)}, address=address_of(request))
        known = isinstance(refused, NoRole)
        shown, status = (NO_ROLE, 403) if known else (REFUSED, 401)
        return _cleared(request, login_answer(request, desk, "", shown, status))
    return _cleared(request, await enter(request, actor, journey.goes_to))


def provider_of(request: Request) -> Provider:
    """The provider of the app behind this request; there is nothing here when none is set."""
    state = request.app.state
    desk: Desk = state.desk
    if not desk.app.settings.access.oidc_issuer:
        raise Problem(404, "not_found", "there is nothing at this path")
    if not hasattr(state, "provider"):
        require_packages()
        state.provider = Provider(desk.app)
    provider: Provider = state.provider
    return provider


def _journey(request: Request, state: str) -> Journey:
    secret, _, goes_to = request.cookies.get(_name(request), "").partition(".")
    if not secret:
        raise ClaimRefused("no cookie of a journey that began here")
    try:
        journey = Journey(secret, safe_path(request, _read(goes_to)))
    except ValueError:
        raise ClaimRefused("a cookie that is not ours") from None
    if not hmac.compare_digest(journey.state.encode(), state.encode()):
        raise ClaimRefused("state: another browser began this journey")
    return journey


def _cleared(request: Request, response: Response) -> Response:
    response.delete_cookie(
        _name(request), path=_path(request), secure=is_secure(request), httponly=True, samesite="lax"
    )
    return response


def _name(request: Request) -> str:
    return "__Secure-mainspring-oidc" if is_secure(request) else "mainspring-oidc"


def _path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/login/oidc"


def _written(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _read(text: str) -> str:
    return urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)).decode()
