"""`Idempotency-Key`: what a caller calls a request, so that it may be sent again."""

from __future__ import annotations

from hashlib import sha256

from starlette.requests import Request

from mainspring.errors import InvalidArgument
from mainspring.model.job import RequestKey
from mainspring.web.access.identity import actor_of


async def request_key(request: Request, key: str | None) -> RequestKey | None:
    """The key with what it stands for: method, path and body, byte for byte."""
    if key is None:
        return None
    if not key.isascii() or not key.isprintable():
        raise InvalidArgument("idempotency-key", key, "1 to 200 printable ASCII characters")
    asked = f"{request.method} {request.scope['path']}\n".encode() + await request.body()
    return RequestKey(caller=actor_of(request).name, key=key, digest=sha256(asked).digest())
