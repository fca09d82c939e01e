"""Secrets out of what people read: by the name of a key in JSON, and by how they look in text.

It errs on the safe side: what is hidden for no reason can be looked up in the store by those who may.
Work is bounded by the size of what is shown, never by what an expression could be made to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

HIDDEN = "[redacted]"
CUT = "[cut]"
DEEPEST = 64
MOST_NODES = 20_000
LONGEST_TEXT = 64 * 1024
LONGEST_KEY = 200
DETAILS = 8 * 1024
"""Bytes of JSON that an entry in the log of acts may have."""

# fmt: off
_WORDS = frozenset({
    "password", "passwords", "passwd", "pwd", "passphrase", "secret", "secrets", "token", "tokens",
    "authorization", "cookie", "cookies", "credential", "credentials", "jwt", "bearer", "otp", "pin",
    "cvv", "cvc", "signature",
})
_PAIRS = frozenset({
    ("api", "key"), ("private", "key"), ("secret", "key"), ("access", "key"), ("signing", "key"),
    ("encryption", "key"), ("session", "key"), ("card", "number"),
})
_INSIDE = (
    "password", "passwd", "passphrase", "secret", "apikey", "privatekey", "credential", "authorization",
    "accesskey", "accesstoken", "refreshtoken", "authtoken", "idtoken", "sessiontoken",
)
"""Of keys without any sign between their words: clientsecret, DBPASSWORD."""
_ABOUT = frozenset({
    "id", "ids", "at", "name", "names", "count", "type", "kind", "expires", "expiry", "hint", "length",
    "limit", "limits", "max", "min", "age", "ttl", "policy", "url", "uri", "used", "file", "path",
    "role", "scope", "scopes", "endpoint", "required", "enabled",
})
"""Last words of what is told about a secret: token_id, password_changed_at, cookie_name."""
# fmt: on
_SPLIT = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# Repeats are bounded, and of a class that the sign after them does not belong to: nothing to go back over.
_KEY = re.compile(r"""([A-Za-z0-9_.-]{2,64})["']?[ \t]{0,4}[=:][ \t]{0,4}""")
_VALUE = re.compile(
    r"""(["'])[^"'\n]{0,4096}\1?|(?:(?:Bearer|Basic|Token|Digest)[ \t]{1,4})?[^\s"',;&<>)\]}]{1,4096}""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(Bearer|Basic)([ \t]{1,4})[A-Za-z0-9._~+/=-]{6,4096}", re.IGNORECASE)
_USERINFO = re.compile(r"(://[^\s/:@]{0,256}):[^\s/@]{1,512}@")
_OURS = re.compile(r"\bms_[A-Za-z0-9_-]{16,128}")
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{8,2048}\.[A-Za-z0-9_-]{2,4096}\.[A-Za-z0-9_-]{0,1024}")
_PEM = re.compile(r"-----BEGIN ([A-Z ]{0,40}PRIVATE KEY)-----[^-]{0,16384}(?:-----END \1-----)?")


class Redaction:
    """What is hidden here: the usual names, and those that were configured."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._own = frozenset(squeezed for name in names if (squeezed := _squeezed(name)))
        # Keys repeat from row to row.
        self.is_secret: Callable[[str], bool] = lru_cache(maxsize=4096)(self._is_secret)

    def payload(self, value: object) -> object:
        """The same JSON-like value without its secrets, and without what is too deep or too much."""
        return _Walk(self).copy(value, 0)

    def text(self, text: str) -> str:
        """The same text without what looks like a secret; one event stays one line if it was one."""
        if len(text) > LONGEST_TEXT:
            text = text[:LONGEST_TEXT] + CUT
        text = _PEM.sub(HIDDEN, text)
        text = _JWT.sub(HIDDEN, _OURS.sub(HIDDEN, text))
        text = _USERINFO.sub(rf"\1:{HIDDEN}@", text)
        text = self._pairs(text)
        return _SCHEME.sub(rf"\1\2{HIDDEN}", text)

    def details(self, value: object) -> bytes:
        """JSON for an entry in the log of acts: redacted, ASCII, and of a bounded size."""
        written = json.dumps(self.payload(value), separators=(",", ":"), default=str)
        if len(written) <= DETAILS:
            return written.encode()
        return json.dumps({CUT: written[: DETAILS // 2], "characters": len(written)}).encode()

    def _is_secret(self, key: str) -> bool:
        key = key[:LONGEST_KEY]
        squeezed = _squeezed(key)
        if squeezed in self._own:
            return True
        words = [word for word in _SPLIT.split(_HUMP.sub(" ", key).lower()) if word]
        if not words or (len(words) > 1 and words[-1] in _ABOUT):
            return False
        return (
            not _WORDS.isdisjoint(words)
            or any(pair in _PAIRS for pair in pairwise(words))
            or any(inside in squeezed for inside in _INSIDE)
        )

    def _pairs(self, text: str) -> str:
        """Without the values that follow a secret's name: key=value, key: value, "key": "value"."""
        parts: list[str] = []
        done = at = 0
        while key := _KEY.search(text, at):
            at = key.end()
            if self.is_secret(key[1]) and (value := _VALUE.match(text, at)):
                parts += text[done:at], HIDDEN
                done = at = value.end()
        return "".join((*parts, text[done:]))


class _Walk:
    """One value, with as many nodes as may be shown."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction, self._left = redaction, MOST_NODES

    def copy(self, value: object, depth: int) -> object:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            return CUT
        if isinstance(value, str):
            return self._redaction.text(value)
        if isinstance(value, Mapping):
            return self._object(value, depth)
        if isinstance(value, list | tuple | set | frozenset):
            return [self.copy(item, depth + 1) for item in self._bounded(value)]
        if isinstance(value, bytes | bytearray):
            return f"[{len(value)} bytes]"
        return value

    def _object(self, value: Mapping[object, object], depth: int) -> dict[str, object]:
        shown: dict[str, object] = {}
        for key in self._bounded(value):
            name, item = str(key), value[key]
            hide = self._redaction.is_secret(name) and not _harmless(name, item)
            shown[name[:LONGEST_KEY]] = HIDDEN if hide else self.copy(item, depth + 1)
        return shown

    def _bounded(self, value: Iterable[object]) -> Iterable[object]:
        for item in value:
            if self._left < 0:
                return
            yield item


def _harmless(name: str, value: object) -> bool:
    """Nothing, a switch, or a count: max_tokens=4000 is no secret."""
    if value is None or isinstance(value, bool):
        return True
    return isinstance(value, int | float) and name.lower().endswith("tokens")


def _squeezed(name: str) -> str:
    return _SPLIT.sub("", name.lower())
