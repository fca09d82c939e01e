"""Signatures as the Standard Webhooks have them: https://www.standardwebhooks.com"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

from mainspring.config.secrets import signing_key
from mainspring.errors import InvalidArgument

_MOST_SECRETS = 5


class Signer:
    """Signs with every secret it has: while one is replaced by another, receivers may know either."""

    def __init__(self, secret: str | Sequence[str], field: str) -> None:
        given: Sequence[object] = (secret,) if isinstance(secret, str) else secret
        if not isinstance(given, list | tuple) or len(given) > _MOST_SECRETS:
            raise InvalidArgument(field, type(given), f"a secret, or a list of at most {_MOST_SECRETS}")
        self._keys = tuple(signing_key(each, field) for each in given)

    def __repr__(self) -> str:
        return f"<Signer with {len(self._keys)} secrets>"

    def headers(self, message_id: str, timestamp: int, body: bytes) -> tuple[tuple[str, str], ...]:
        """Those of one try; none without a secret."""
        if not self._keys:
            return ()
        content = f"{message_id}.{timestamp}.".encode() + body
        signed = [hmac.new(key, content, hashlib.sha256).digest() for key in self._keys]
        return (
            ("webhook-id", message_id),
            ("webhook-timestamp", str(timestamp)),
            ("webhook-signature", " ".join(f"v1,{base64.b64encode(each).decode()}" for each in signed)),
        )
