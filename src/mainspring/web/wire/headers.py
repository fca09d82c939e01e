"""Headers of every answer, errors too: what a browser may do with it, which is next to nothing."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
DATA_POLICY = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with it browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_YEAR = "max-age=31536000"


class SecurityHeaders:
    """Adds them. There is no CORS: nobody else's page may read an answer of ours."""

    def __init__(self, app: ASGIApp, *, public_url: Callable[[], str] = str) -> None:
        self._app, self._public_url = app, public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add(MutableHeaders(scope=message), secure=self._is_secure(scope))
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _is_secure(self, scope: Scope) -> bool:
        """Whether people come by https: a proxy that ends TLS may not tell us, so what is set is first."""
        if public_url := self._public_url():
            return public_url.startswith("https:")
        return bool(scope.get("scheme") == "https")


def plain_headers() -> dict[str, str]:
    """Those of an answer that is made before there is a request."""
    return {**_ALWAYS, "Content-Security-Policy": DATA_POLICY, "Cache-Control": "no-store"}


def _add(headers: MutableHeaders, *, secure: bool) -> None:
    for name, value in _ALWAYS.items():
        headers.setdefault(name, value)
    is_page = headers.get("content-type", "").startswith("text/html")
    headers.setdefault("Content-Security-Policy", PAGE_POLICY if is_page else DATA_POLICY)
    # Static files name themselves how long they keep; what we know of jobs nobody keeps.
    headers.setdefault("Cache-Control", "no-store")
    if secure:
        headers.setdefault("Strict-Transport-Security", _YEAR)
