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
from typing import Any, TypeVar

import msgspec

from mainspring.declare.names import is_name

T = TypeVar("T")
HIDDEN = "[redacted]"
CUT = "[cut]"
DEEPEST = 64
MOST_NODES = 20_000
LONGEST_TEXT = 64 * 1024
LONGEST_KEY = 200
DETAILS = 8 * 1024
"""Bytes of JSON that an entry in the audit log may have."""

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
# Text may be written for an address (password%3Dx), or be JSON in a string of JSON (\"password\": \"x\").
_KEY = re.compile(r"""([A-Za-z0-9_.-]{2,64})\\{0,4}(?:["']|%22|%27)?[ \t]{0,4}(?:[=:]|%3[ADad])[ \t]{0,4}""")
_VALUE = re.compile(
    r"""\[redacted\]"""
    r"""|"(?:[^"\\\n]|\\.){0,4096}"?|'(?:[^'\\\n]|\\.){0,4096}'?|\\{1,4}["'][^"'\\\n]{0,4096}(?:\\{1,4}["'])?"""
    r"""|\[[^\]\n]{0,4096}\]?|\{[^}\n]{0,4096}\}?"""
    r"""|(?:(?:Bearer|Basic|Token|Digest)[ \t]{1,4})?[^\s"',;&<>)\]}]{1,4096}""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(Bearer|Basic)((?:[ \t+]|%20){1,4})[A-Za-z0-9._~+/=%-]{6,4096}", re.IGNORECASE)
# A password may hold slashes that nobody escaped; what begins like a port and a path is none. A text that was
# cut may have lost the @.
_USERINFO = re.compile(
    r"""(://[^\s/:@\[]{0,256}):(?!\d{1,5}(?:[/?#]|\Z))(?:[^\s"'<>]{1,512}(@)|[^\s"'<>@]{1,512}\Z)"""
)
_USERINFO_IN_ADDRESS = re.compile(r"(%3A%2F%2F[^\s%:@/&]{0,256}%3A)[^\s@/&]{1,512}?(%40|@)", re.IGNORECASE)
_OURS = re.compile(r"\bms_[A-Za-z0-9_-]{16,128}")
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{8,2048}\.[A-Za-z0-9_-]{2,4096}(?:\.[A-Za-z0-9_-]{0,1024})?")
_PEM = re.compile(r"-----BEGIN ([A-Z ]{0,40}PRIVATE KEY)-----[^-]{0,16384}(?:-----END \1-----)?")


NAMES = frozenset((
    *("name", "names", "task", "queue", "schedule", "workflow", "step", "undoes", "source", "target"),
    *("queues", "tasks", "parents", "overdue", "schedules"),
))  # fmt: skip
"""Fields of ours that hold names. A name is what other requests ask with: hidden, nothing could be done with
it. Only text that is made like one is let pass (letters, digits and _ . : / -); the documents say that."""
_NOTHING = frozenset(("", "null", "None", "true", "false", "True", "False"))


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
        text = _USERINFO.sub(rf"\1:{HIDDEN}\2", text)
        text = _USERINFO_IN_ADDRESS.sub(rf"\1{HIDDEN}\2", text)
        text = self._pairs(text)
        return _SCHEME.sub(rf"\1\2{HIDDEN}", text)

    def within(self, value: T, field: str = "") -> T:
        """The same value of ours, in which every text is without what looks like a secret, but for names."""
        made: Any = value
        if isinstance(value, str) and type(value) is str:
            made = value if field in NAMES and is_name(value) else self.text(value)
        elif isinstance(value, msgspec.Struct):
            kept = {name: self.within(getattr(value, name), name) for name in value.__struct_fields__}
            made = msgspec.structs.replace(value, **kept)
        elif isinstance(value, Mapping):
            made = {key: self.within(each, field) for key, each in value.items()}
        elif isinstance(value, list | tuple):
            made = type(value)(self.within(each, field) for each in value)
        return made  # type: ignore[no-any-return]

    def details(self, value: object) -> bytes:
        """JSON for an entry in the audit log: redacted, ASCII, and of a bounded size."""
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
                parts += text[done:at], _hidden(key[1], value[0])
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


def _hidden(name: str, said: str) -> str:
    """What stands in a text in place of a secret's value. Quotes stay, so that JSON stays JSON."""
    bare = said.strip("\\\"'")
    if bare == HIDDEN or bare in _NOTHING or (bare.isdigit() and name.lower().endswith("tokens")):
        return said
    quote = said[: len(said) - len(said.lstrip("\\\"'"))]
    return f"{quote}{HIDDEN}{quote}" if quote and said.endswith(quote) and len(said) > len(quote) else HIDDEN


def _harmless(name: str, value: object) -> bool:
    """Nothing, a switch, or a count: max_tokens=4000 is no secret."""
    if value is None or isinstance(value, bool):
        return True
    return isinstance(value, int | float) and name.lower().endswith("tokens")


def _squeezed(name: str) -> str:
    return _SPLIT.sub("", name.lower())
