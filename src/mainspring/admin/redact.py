"""Secrets out of what people read: by the name of a key in JSON, and by how they look in text.

It errs on the safe side: what is hidden for no reason can be looked up in the store by those who may.
Work is bounded by the size of what is shown, never by what an expression could be made to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import quote, unquote_plus

import msgspec

from mainspring.admin.spelled import HIDDEN, LABELS, VALUES, Spelled, squeeze
from mainspring.tasks.checks import is_name

T = TypeVar("T")
CUT = "[cut]"
DEEPEST = 64
MOST_NODES = 20_000
LONGEST_TEXT = 64 * 1024
LONGEST_KEY = 200
MOST_BESIDE = 32
"""Fields of an object in which one may say what another is."""
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
_SCHEME = re.compile(r"\b(Bearer|Basic)((?:[ \t+]|%20){1,4})[A-Za-z0-9._~+/=%-]{6,4096}", re.IGNORECASE)
# A password may hold slashes that nobody escaped; what begins like a port and a path is none. A text that was
# cut may have lost the @.
_USERINFO = re.compile(
    r"""(://[^\s/:@\[]{0,256}):(?!\d{1,5}(?:[/?#]|\Z))(?:[^\s"'<>]{1,512}(@)|[^\s"'<>@]{1,512}\Z)"""
)
_OURS = re.compile(r"\bms_[A-Za-z0-9_-]{16,128}")
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{8,2048}\.[A-Za-z0-9_-]{2,4096}(?:\.[A-Za-z0-9_-]{0,1024})?")
_PEM = re.compile(r"-----BEGIN ([A-Z ]{0,40}PRIVATE KEY)-----[^-]{0,16384}(?:-----END \1-----)?")


NAMES = frozenset((
    *("name", "names", "task", "queue", "schedule", "workflow", "step", "undoes", "source", "target"),
    *("queues", "tasks", "parents", "overdue", "schedules"),
))  # fmt: skip
"""Fields of ours that hold names. A name is what other requests ask with: hidden, nothing could be done with
it. Only text that is made like one is let pass (letters, digits and _ . : / -); the documents say that."""
_WORDS_OF_ADDRESSES = re.compile(r"""[^\s"'<>]+""")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
DEEPEST_ENCODED = 3
"""How often a text may have been written for an address, one in another."""


class Redaction:
    """What is hidden here: the usual names, and those that were configured."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._own = frozenset(squeezed for name in names if (squeezed := squeeze(name)))
        # Keys repeat from row to row.
        self.is_secret: Callable[[str], bool] = lru_cache(maxsize=4096)(self._is_secret)
        self._spelled = Spelled(self.is_secret)

    def payload(self, value: object) -> object:
        """The same JSON-like value without its secrets, and without what is too deep or too much."""
        return _Walk(self).copy(value, 0)

    def text(self, text: str) -> str:
        """The same text without what looks like a secret; one event stays one line if it was one."""
        if len(text) > LONGEST_TEXT:
            text = text[:LONGEST_TEXT] + CUT
        return self._text(text, DEEPEST_ENCODED)

    def key(self, key: str) -> str:
        """The key of an object, as it may be shown: most are short, but a key may be any text."""
        return self.text(key)[:LONGEST_KEY]

    def names_secret(self, text: object) -> bool:
        """Whether it is the name of a secret and nothing but a name."""
        return self._spelled.names_secret(text)

    def within(self, value: T, field: str = "") -> T:
        """The same value of ours, in which every text is without what looks like a secret, but for names."""
        made: Any = value
        if isinstance(value, str) and type(value) is str:
            made = value if field in NAMES and is_name(value) else self.text(value)
        elif isinstance(value, msgspec.Struct):
            kept = {name: self.within(getattr(value, name), name) for name in value.__struct_fields__}
            made = msgspec.structs.replace(value, **kept)
        elif isinstance(value, Mapping):
            made = {self._name(key): self.within(each, field) for key, each in value.items()}
        elif isinstance(value, list | tuple):
            made = type(value)(self.within(each, field) for each in value)
        return made  # type: ignore[no-any-return]

    def details(self, value: object) -> bytes:
        """JSON for an entry in the audit log: redacted, ASCII, and of a bounded size."""
        written = json.dumps(self.payload(value), separators=(",", ":"), default=self._other)
        if len(written) <= DETAILS:
            return written.encode()
        return json.dumps({CUT: written[: DETAILS // 2], "characters": len(written)}).encode()

    def _name(self, key: object) -> object:
        return self.text(key) if isinstance(key, str) and not is_name(key) else key

    def _other(self, value: object) -> str:
        return self.text(str(value))

    def _is_secret(self, key: str) -> bool:
        key = key[:LONGEST_KEY]
        squeezed = squeeze(key)
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

    def _text(self, text: str, depth: int) -> str:
        text = _PEM.sub(HIDDEN, text)
        text = _JWT.sub(HIDDEN, _OURS.sub(HIDDEN, text))
        text = _USERINFO.sub(rf"\1:{HIDDEN}\2", text)
        text = self._spelled.without(text)
        text = _SCHEME.sub(rf"\1\2{HIDDEN}", text)
        if not depth or not _ENCODED.search(text):
            return text
        return _WORDS_OF_ADDRESSES.sub(lambda word: self._encoded(word[0], depth - 1), text)

    def _encoded(self, word: str, depth: int) -> str:
        """A word that may be written for an address, such as password%3Dx."""
        if not _ENCODED.search(word):
            return word
        plain = unquote_plus(word)
        shown = self._text(plain, depth)
        return word if shown == plain else quote(shown, safe="/:?&=#[]@")


@lru_cache(maxsize=8)
def redaction(names: tuple[str, ...]) -> Redaction:
    """One for each set of names: it remembers the keys that it has judged."""
    return Redaction(names)


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
        if isinstance(value, list | tuple):
            return self._list(value, depth)
        if isinstance(value, set | frozenset):
            return [self.copy(item, depth + 1) for item in self._bounded(value)]
        if isinstance(value, bytes | bytearray):
            return f"[{len(value)} bytes]"
        return value

    def _object(self, value: Mapping[object, object], depth: int) -> dict[str, object]:
        shown: dict[str, object] = {}
        label = self._label(value)
        often: dict[str, int] = {}
        for key in self._bounded(value):
            name, item = str(key), value[key]
            called = label if label and squeeze(name[:LONGEST_KEY]) in VALUES else name
            hide = self._redaction.is_secret(called) and not _harmless(called, item)
            put = self._redaction.key(name)
            if put in shown:  # two keys may look alike now
                often[put] = often.get(put, 1) + 1
                put = f"{put} ({often[put]})"
            shown[put] = HIDDEN if hide else self.copy(item, depth + 1)
        return shown

    def _label(self, value: Mapping[object, object]) -> str:
        """{"name": "DB_PASSWORD", "value": …}: the name of the secret that stands beside its value."""
        if len(value) > MOST_BESIDE:
            return ""
        named = (item for key, item in value.items() if squeeze(str(key)[:LONGEST_KEY]) in LABELS)
        return next((str(item) for item in named if self._redaction.names_secret(item)), "")

    def _list(self, value: Sequence[object], depth: int) -> list[object]:
        """A list; of a header as a pair, and of the argument behind --password, only the name."""
        names = self._redaction.names_secret
        pair = len(value) == 2 and names(value[0])
        shown: list[object] = []
        before: object = None
        for item in self._bounded(value):
            argument = isinstance(before, str) and before.startswith("--") and names(before)
            hide = bool(shown) and (pair or argument) and not _harmless(str(before), item)
            shown.append(HIDDEN if hide else self.copy(item, depth + 1))
            before = item
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
