"""Hides secrets in what people read: by the name of a key in JSON, and by their form in text.

In doubt a value is hidden: users of the store can still read it there. The work is bounded by the size of the
input, because no regular expression here can backtrack without a limit. A text is read once for values with a
name: key=value, "key": "value", headers, pairs, name and value. Such a value is hidden as a whole and is not
read again. A value that was shown hidden, and comes back unchanged, keeps its old content.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import quote, unquote_plus

import msgspec

from mainspring.tasks.checks import is_name

T = TypeVar("T")
CUT = "[cut]"
DEEPEST = 64
MOST_NODES = 20_000
LONGEST_TEXT = 64 * 1024
LONGEST_KEY = 200
MOST_BESIDE = 32
"""The most fields of an object in which one field may name another."""
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
"""Parts of keys without a sign between their words: clientsecret, DBPASSWORD."""
_ABOUT = frozenset({
    "id", "ids", "at", "name", "names", "count", "type", "kind", "expires", "expiry", "hint", "length",
    "limit", "limits", "max", "min", "age", "ttl", "policy", "url", "uri", "used", "file", "path",
    "role", "scope", "scopes", "endpoint", "required", "enabled",
})
"""Last words of keys that describe a secret and do not hold it: token_id, password_changed_at,
cookie_name."""
# fmt: on
_SPLIT = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Repeats are bounded, and of a class that the sign after them does not belong to: nothing to go back over.
_SCHEME = re.compile(r"\b(Bearer|Basic)((?:[ \t+]|%20){1,4})[A-Za-z0-9._~+/=%-]{6,4096}", re.IGNORECASE)
# A password may have slashes without escapes. A text that begins like a port and a path is no password. A
# text that was cut may have lost the @.
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
"""Our fields that hold names. Other requests need these names, so they are not hidden. Only text in the form
of a name (letters, digits and _ . : / -) is shown; the documentation describes this."""
_WORDS_OF_ADDRESSES = re.compile(r"""[^\s"'<>]+""")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
DEEPEST_ENCODED = 3
"""How many times a text may be percent-encoded."""
HIDDEN = "[redacted]"
NEAR = 512
"""Characters within which a name and its value belong to one object."""
BEFORE = 256
"""Characters before `)=(` in which the names of columns are looked for."""
LONGEST_NAME = 64
LABELS = frozenset((
    *("name", "key", "header", "headername", "field", "variable", "env", "parameter", "parametername"),
    *("parameterkey", "setting", "option"),
))  # fmt: skip
"""Keys, squeezed, whose value is the name of the value beside it: {"name": "DB_PASSWORD", "value": …}."""
VALUES = frozenset((
    *("value", "values", "val", "content", "contents", "data", "text"),
    *("headervalue", "parametervalue", "plaintext", "plainvalue"),
))  # fmt: skip
_NOTHING = frozenset(("", "null", "None", "true", "false", "True", "False"))
_NAME_SIGNS = string.ascii_letters + string.digits + "_.-"
# Text may be percent-encoded: password%3Dx. `password == x`, `password := x` and `password => x` too.
_SIGN = re.compile(r"(?:[=:]|%3[ADad])[=:>~]*(?:[ \t]|\\{1,8}t)*")
# In JSON a tab is written \\t.
_WRITTEN_SPACE = re.compile(r"(?:[ \t]|\\{1,8}t){1,64}\Z")
_CLOSING = "\\\"')]}"
_QUOTED = re.compile(r"""[bBrRuUfF]{0,2}(\\*)(\"\"\"|'''|["'])""")
_BRACKET = re.compile(r"""(?:[A-Za-z_][\w.]{0,99}(?=\())?[\[({]""")
_ANGLE = re.compile(r"<[^<>\n]{0,4096}>")
# A quote in the middle of a word ends nothing.
_BARE = re.compile(r"""<?(?:[^\s"',;&<>)\]}]|["'](?=\w))+""")
_SCHEMES = re.compile(r"(?:Bearer|Basic|Token|Digest|ApiKey|Negotiate)[ \t]+", re.IGNORECASE)
_SECOND = re.compile(r"""[ \t]+(?:[^\s"',;&<>)\]}]|["'](?=\w))+""")
_PARAMETER = re.compile(r"""[A-Za-z0-9_-]+[ \t]*=[ \t]*[^\s=]""")
_STOPS = re.compile(r"""(\\*)(["'])|\n|\r""")
_IN_BRACKETS = re.compile(r"""(\\*)(["'])|[\[({\])}]|\n""")
_LINE_GOES_ON = re.compile(r"""[ \t]*(?=(.))""")
_A_NAME = re.compile(r"[A-Za-z0-9_.-]{2,64}")
_LABEL = re.compile(r"""(?:[bBuU]?\\*["'])?([A-Za-z0-9_.-]{2,64})(?![A-Za-z0-9_.-])""")
_ANOTHER_OBJECT = re.compile(r"[{}]|\n[ \t]*- ")
_PAIR = re.compile(
    r"""(?:(?P<open>[\[(])[ \t\n]{0,40}[bBuU]?)?\\{0,8}(?P<quote>["'])(?P<name>[A-Za-z0-9_.-]{2,64})"""
    r"""\\{0,8}(?P=quote)[ \t\n]{0,40},[ \t\n]{0,40}(?=[bBuU]?\\{0,8}["'])"""
)
_PAIR_ENDS = re.compile(r"[ \t\n]{0,40},?[ \t\n]{0,40}[\])]")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


class Redaction:
    """Hides values with the usual names of secrets, and with configured names."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._own = frozenset(squeezed for name in names if (squeezed := squeeze(name)))
        # Keys repeat from row to row.
        self.is_secret: Callable[[str], bool] = lru_cache(maxsize=4096)(self._is_secret)
        self._spelled = Spelled(self.is_secret)

    def payload(self, value: object) -> object:
        """The same JSON-like value without its secrets, cut if it is too deep or too large."""
        return _Walk(self).copy(value, 0)

    def text(self, text: str) -> str:
        """The same text without text in the form of a secret. One line stays one line."""
        if len(text) > LONGEST_TEXT:
            text = text[:LONGEST_TEXT] + CUT
        return self._text(text, DEEPEST_ENCODED)

    def key(self, key: str) -> str:
        """The key of an object, as it may be shown. A key may be any text."""
        return self.text(key)[:LONGEST_KEY]

    def names_secret(self, text: object) -> bool:
        """Whether a text is only the name of a secret."""
        return self._spelled.names_secret(text)

    def within(self, value: T, field: str = "") -> T:
        """The same value of our types, with every text redacted, except names."""
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
        """A word that may be percent-encoded, such as password%3Dx."""
        if not _ENCODED.search(word):
            return word
        plain = unquote_plus(word)
        shown = self._text(plain, depth)
        return word if shown == plain else quote(shown, safe="/:?&=#[]@")


@lru_cache(maxsize=8)
def redaction(names: tuple[str, ...]) -> Redaction:
    """One `Redaction` for each set of names, because it caches its decisions about keys."""
    return Redaction(names)


class Spelled:
    """Finds the values in texts that follow the names of secrets."""

    def __init__(self, is_secret: Callable[[str], bool]) -> None:
        self._is_secret = is_secret

    def without(self, text: str) -> str:
        """The same text without these values."""
        parts: list[str] = []
        done = 0
        for begin, end, name in sorted({*self._assigned(text), *self._paired(text)}):
            if begin >= done:
                parts += text[done:begin], _hidden(name, text[begin:end])
            done = max(done, end)
        return "".join((*parts, text[done:]))

    def names_secret(self, text: object) -> bool:
        """Whether a text is only the name of a secret."""
        if isinstance(text, bytes | bytearray):
            text = bytes(text[: LONGEST_NAME + 1]).decode("ascii", "replace")
        return isinstance(text, str) and _A_NAME.fullmatch(text) is not None and self._is_secret(text)

    def _assigned(self, text: str) -> Iterator[tuple[int, int, str]]:
        done, label, value = 0, -1, -1
        while sign := _SIGN.search(text, done):
            head = text[done : sign.start()].rstrip(" \t")
            if head.endswith("t") and (
                space := _WRITTEN_SPACE.search(head, max(0, len(head) - LONGEST_NAME))
            ):
                head = head[: space.start()]
            head = head.rstrip(_CLOSING)
            name = head[len(head.rstrip(_NAME_SIGNS)) :][-LONGEST_NAME:]
            start, done = sign.span()
            squeezed = squeeze(name)
            if (
                (len(name) > 1 and self._is_secret(name))
                or (squeezed in VALUES and _are_together(text, label, start))
                or self._is_of_columns(text, start, done)
            ):
                end = _end_of_value(text, done, squeezed)
                if end > done:
                    yield done, end, name
                    done = end
            elif squeezed in LABELS:
                named = _LABEL.match(text, done)
                label = named.end() if named and self._is_secret(named[1]) else -1
                if label > 0 and _are_together(text, value, start):
                    yield value, value + _end_of_value(text[value:start], 0, squeezed), name
                value = -1
            elif squeezed in VALUES:
                value = done

    def _paired(self, text: str) -> Iterator[tuple[int, int, str]]:
        """`("X-Api-Key", "…")`, as headers are written, and `"--password", "…"`, as arguments are."""
        done = 0
        while pair := _PAIR.search(text, done):
            done = pair.end()
            name = pair["name"]
            argument = name.startswith("-")
            if not (argument or pair["open"]) or not self._is_secret(name):
                continue
            # Of bounded length: a longer one is no header.
            end = done + _end_of_quoted(text[done : done + 4 * NEAR], 0)
            if argument or end - done >= 4 * NEAR or _PAIR_ENDS.match(text, end):
                yield done, end, name
                done = end

    def _is_of_columns(self, text: str, start: int, end: int) -> bool:
        """PostgreSQL: Key (tenant, password)=(4, x) already exists."""
        if text[start - 1 : start + 1] != ")=" or not text.startswith("(", end):
            return False
        low = max(0, start - BEFORE)
        begin = text.rfind("Key (", low, start)
        names = _A_NAME.findall(text, begin if begin >= 0 else max(low, text.rfind("(", low, start)), start)
        return any(self._is_secret(name) for name in names)


def squeeze(name: str) -> str:
    """A name without any sign between its words."""
    return _NOT_IN_NAMES.sub("", name.lower())


def restored(wanted: object, had: object, shown: object = None) -> object:
    """A value that was shown hidden, as a whole or in part, and came back unchanged, gets its old content."""
    if wanted == HIDDEN or (isinstance(wanted, str) and wanted == shown):
        return had
    if isinstance(wanted, dict):
        before = had if isinstance(had, dict) else {}
        seen = shown if isinstance(shown, dict) else {}
        return {key: restored(value, before.get(key, value), seen.get(key)) for key, value in wanted.items()}
    if isinstance(wanted, list):
        old = had if isinstance(had, list) else []
        seen_there = shown if isinstance(shown, list) and len(shown) == len(old) else []
        return [
            restored(value, old[at], seen_there[at] if at < len(seen_there) else None)
            if at < len(old)
            else value
            for at, value in enumerate(wanted)
        ]
    return wanted


class _Walk:
    """Copies one value, with a bounded number of nodes."""

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
        """{"name": "DB_PASSWORD", "value": …}: the name of a secret beside its value."""
        if len(value) > MOST_BESIDE:
            return ""
        named = (item for key, item in value.items() if squeeze(str(key)[:LONGEST_KEY]) in LABELS)
        return next((str(item) for item in named if self._redaction.names_secret(item)), "")

    def _list(self, value: Sequence[object], depth: int) -> list[object]:
        """A list. The value of a header pair, and the argument after --password, are hidden."""
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
    """Whether a value is None, a switch, or a count: max_tokens=4000 is no secret."""
    if value is None or isinstance(value, bool):
        return True
    return isinstance(value, int | float) and name.lower().endswith("tokens")


def _hidden(name: str, said: str) -> str:
    """The replacement of a secret's value in a text. Quotes stay, so that JSON stays JSON."""
    bare = said.strip("\\\"'")
    if bare == HIDDEN or bare in _NOTHING or (bare.isdigit() and name.lower().endswith("tokens")):
        return said
    quote = said[: len(said) - len(said.lstrip("\\\"'"))]
    return f"{quote}{HIDDEN}{quote}" if quote and said.endswith(quote) and len(said) > len(quote) else HIDDEN


def _are_together(text: str, begin: int, end: int) -> bool:
    """Whether two places, the first of which is known, are in one object."""
    return begin > -1 and end - begin < NEAR and _ANOTHER_OBJECT.search(text, begin, end) is None


def _end_of_value(text: str, at: int, name: str) -> int:
    if text.startswith(HIDDEN, at):
        return at + len(HIDDEN)
    if _QUOTED.match(text, at):
        return _end_of_quoted(text, at)
    if bracket := _BRACKET.match(text, at):
        return _end_of_bracket(text, bracket.end() - 1, at)
    if angle := _ANGLE.match(text, at):
        return angle.end()
    if scheme := _SCHEMES.match(text, at):
        at = scheme.end()
    word = _BARE.match(text, at)
    end = word.end() if word else at
    if "cookie" in name:
        return _end_of_header(text, at) if _in_cookie(text, at, end) else end
    if "authorization" in name and not scheme and (second := _SECOND.match(text, end)):
        # Of any scheme: one more word, or parameters up to the end of the line.
        return _end_of_header(text, at) if _has_parameters(text, at, second.end()) else second.end()
    return _end_of_header(text, at) if _PARAMETER.match(text, at) and scheme else end


def _end_of_quoted(text: str, at: int) -> int:
    """The position after the closing quote, or the end of the line if there is none."""
    opened = _QUOTED.match(text, at)
    if opened is None:
        return at
    slashes, quote, at = len(opened[1]), opened[2], opened.end()
    if len(quote) > 1:
        end = text.find(quote, at)
        return len(text) if end < 0 else end + len(quote)
    for each in _STOPS.finditer(text, at):
        if each[2] is None:
            return each.start()
        if each[2] != quote:
            continue
        before = len(each[1])
        closes = before <= slashes if slashes else before % 2 == 0
        # SQL doubles a quote to escape it, a shell goes on behind it.
        goes_on = text[each.end() : each.end() + 1].isalnum() or text.startswith(
            opened[1] + quote, each.end()
        )
        if closes and not goes_on:
            return each.end()
    return len(text)


def _end_of_bracket(text: str, at: int, begin: int) -> int:
    """The position after the closing bracket. Without one: the end of the lines that are indented deeper than
    the first line, because the next lines of a traceback do not belong to the value."""
    line = text[max(0, begin - BEFORE) : begin].rpartition("\n")[2]
    indent = len(line) - len(line.lstrip(" \t"))
    depth = 0
    while each := _IN_BRACKETS.search(text, at):
        at = each.end()
        if each[2]:
            # An apostrophe is no quote.
            before = text[each.start() - 1]
            if not before.isalnum() or (before in "bBrRuUfF" and not text[each.start() - 2].isalnum()):
                at = max(at, _end_of_quoted(text, each.start()))
        elif each[0] == "\n":
            goes_on = _LINE_GOES_ON.match(text, at)
            if goes_on is None or not _is_inside(goes_on[1], goes_on.end() - at, indent):
                return each.start()
        else:
            depth += 1 if each[0] in "[({" else -1
            if depth == 0:
                return at
    return len(text)


def _is_inside(first: str, indented: int, indent: int) -> bool:
    """Whether a line belongs to the brackets that the lines before it have opened."""
    return first in "\"'[({])}" or (indented > indent and first not in "^~")


def _end_of_header(text: str, at: int) -> int:
    """The end of the line, or of the quotes around it. What follows = in quotes is inside."""
    while stop := _STOPS.search(text, at):
        if stop[2] is None or not text.startswith("=", stop.start() - 1):
            return stop.start()
        at = _end_of_quoted(text, stop.start())
    return len(text)


def _in_cookie(text: str, at: int, end: int) -> bool:
    return "=" in text[at:end] or text.startswith(";", end)


def _has_parameters(text: str, at: int, end: int) -> bool:
    return _PARAMETER.search(text, at, end) is not None
