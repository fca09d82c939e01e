"""The tokens and sessions, and the log of acts, of the app behind a request."""

from __future__ import annotations

from functools import lru_cache

from starlette.requests import Request

from mainspring.app import Mainspring
from mainspring.ops.access.acts import Acts
from mainspring.ops.access.gatehouse import Gatehouse
from mainspring.ops.access.redact import Redaction
from mainspring.web.desk import desk_of


async def gatehouse(app: Mainspring) -> Gatehouse:
    """Who may come in."""
    return Gatehouse(await app.store(), app.clock, app.entropy, app.settings.access)


async def acts_of(request: Request) -> Acts:
    """Where it is put on record."""
    app = desk_of(request).app
    return Acts(await app.store(), app.clock, redaction(app.settings.privacy.redact))


def address_of(request: Request) -> str:
    """Where a request came from, as far as the server knows."""
    return request.client.host if request.client else ""


@lru_cache(maxsize=8)
def redaction(names: tuple[str, ...]) -> Redaction:
    """One for each set of names: it remembers the keys it has judged."""
    return Redaction(names)
