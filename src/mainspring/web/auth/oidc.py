"""`/login/oidc`: sign-in through an OpenID provider. Authorization code, PKCE, state and nonce."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, NamedTuple

from fastapi import Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mainspring.model.access import AccessRole, Actor
from mainspring.web.auth.identity import is_private, is_secure
from mainspring.web.auth.policy import GuardedRoute, Routes
from mainspring.web.auth.provider import (
    ClaimRefused,
    NoRole,
    Provider,
    ProviderAway,
    actor_of_claims,
    require_packages,
)
from mainspring.web.auth.sign_in import ACT, LONGEST, UNSAFE, enter, login_answer, safe_path
from mainspring.web.problems import Problem
from mainspring.web.services import Services, TheServices, address_of

AWAY = "The provider does not answer as it should. Try again, or sign in with a token."
REFUSED = "The provider's answer does not let you in. Try again from the beginning."
NO_ROLE = "The provider knows you, but you have no role here."
FOR = 600
"""Seconds that a user may take at the provider."""
routes = Routes("access", GuardedRoute, prefix="/login/oidc", include_in_schema=False)
Said = Annotated[str, Query(max_length=LONGEST)]


class OidcFlow(NamedTuple):
    """One sign-in of one browser. Its values are derived from one secret, which the cookie keeps: `state`
    shows that the same browser came back, `nonce` that the token belongs to this sign-in, `verifier` that the
    code was issued to us."""

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
async def begin(request: Request, services: TheServices, next: Said = "") -> Response:
    """Go to the provider."""
    provider = provider_of(request)
    if not is_private(request):
        return login_answer(request, services, next, UNSAFE, 403)
    flow = OidcFlow(_written(services.app._entropy.secret()), safe_path(request, next))
    try:
        url = await provider.authorization_url(state=flow.state, nonce=flow.nonce, verifier=flow.verifier)
    except ProviderAway:
        return login_answer(request, services, next, AWAY, 503)
    response = RedirectResponse(url, 303)
    path, secure = _path(request), is_secure(request)
    response.set_cookie(
        _name(request), flow.cookie(), max_age=FOR, path=path, secure=secure, httponly=True, samesite="lax"
    )
    return response


@routes.get("/back", role=None)
async def callback(
    request: Request,
    services: TheServices,
    code: Said = "",
    state: Said = "",
    error: Said = "",
    iss: Said = "",
) -> Response:
    """Come back from the provider, and in."""
    provider = provider_of(request)
    try:
        flow = _flow(request, state)
        if error or not code:
            raise ClaimRefused("the provider said no")
        if iss and iss != services.app.settings.access.oidc_issuer:
            raise ClaimRefused("iss: another provider answers")
        claims = await provider.claims(code, verifier=flow.verifier)
        actor = actor_of_claims(
            claims, services.app.settings.access, nonce=flow.nonce, now=services.clock.now()
        )
    except ProviderAway:
        return _cleared(request, login_answer(request, services, "", AWAY, 503))
    except ClaimRefused as refused:
        unknown = Actor(name="(unknown)", role=AccessRole.VIEWER, via="oidc")
        recorder = await services.recorder()
        await recorder.refused(unknown, ACT, details={"why": str(refused)}, address=address_of(request))
        known = isinstance(refused, NoRole)
        shown, status = (NO_ROLE, 403) if known else (REFUSED, 401)
        return _cleared(request, login_answer(request, services, "", shown, status))
    return _cleared(request, await enter(request, actor, flow.goes_to))


def provider_of(request: Request) -> Provider:
    """The provider of the app behind this request; there is nothing here when none is set."""
    state = request.app.state
    services: Services = state.services
    if not services.app.settings.access.oidc_issuer:
        raise Problem(404, "not_found", "there is nothing at this path")
    if not hasattr(state, "provider"):
        require_packages()
        state.provider = Provider(services.app)
    provider: Provider = state.provider
    return provider


def _flow(request: Request, state: str) -> OidcFlow:
    secret, _, goes_to = request.cookies.get(_name(request), "").partition(".")
    if not secret:
        raise ClaimRefused("no cookie of a flow that began here")
    try:
        flow = OidcFlow(secret, safe_path(request, _read(goes_to)))
    except ValueError:
        raise ClaimRefused("a cookie that is not ours") from None
    if not hmac.compare_digest(flow.state.encode(), state.encode()):
        raise ClaimRefused("state: another browser began this flow")
    return flow


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
