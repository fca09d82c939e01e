"""Where a text spells out the values of secrets: key=value, "key": "value", headers, pairs, name and value.

A text is read once, from sign to sign. What is taken for a value is hidden whole and is not read again, and
what is looked at without being taken is of a bounded length: the work grows with the length of the text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator

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
"""Keys, squeezed, whose value names what stands beside it: {"name": "DB_PASSWORD", "value": …}."""
VALUES = frozenset((
    *("value", "values", "val", "content", "contents", "data", "text"),
    *("headervalue", "parametervalue", "plaintext", "plainvalue"),
))  # fmt: skip
_NOTHING = frozenset(("", "null", "None", "true", "false", "True", "False"))
_NAME_SIGNS = string.ascii_letters + string.digits + "_.-"
# Text may be written for an address: password%3Dx. `password == x`, `password := x` and `password => x` too.
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


class Spelled:
    """The values in texts that follow the names of secrets."""

    def __init__(self, is_secret: Callable[[str], bool]) -> None:
        self._is_secret = is_secret

    def without(self, text: str) -> str:
        """The same text without them."""
        parts: list[str] = []
        done = 0
        for begin, end, name in sorted({*self._assigned(text), *self._paired(text)}):
            if begin >= done:
                parts += text[done:begin], _hidden(name, text[begin:end])
            done = max(done, end)
        return "".join((*parts, text[done:]))

    def names_secret(self, text: object) -> bool:
        """Whether it is the name of a secret and nothing but a name."""
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


def _in_cookie(text: str, at: int, end: int) -> bool:
    return "=" in text[at:end] or text.startswith(";", end)


def _has_parameters(text: str, at: int, end: int) -> bool:
    return _PARAMETER.search(text, at, end) is not None


def _end_of_header(text: str, at: int) -> int:
    """The end of the line, or of the quotes around it. What follows = in quotes is inside."""
    while stop := _STOPS.search(text, at):
        if stop[2] is None or not text.startswith("=", stop.start() - 1):
            return stop.start()
        at = _end_of_quoted(text, stop.start())
    return len(text)


def _end_of_quoted(text: str, at: int) -> int:
    """Behind the closing quote, or the end of the line where there is none."""
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
    """Behind the bracket that closes, however many are inside. Where none does: the end of what is indented
    deeper than its first line, for the next lines of a traceback are no part of it."""
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


def _hidden(name: str, said: str) -> str:
    """What stands in a text in place of a secret's value. Quotes stay, so that JSON stays JSON."""
    bare = said.strip("\\\"'")
    if bare == HIDDEN or bare in _NOTHING or (bare.isdigit() and name.lower().endswith("tokens")):
        return said
    quote = said[: len(said) - len(said.lstrip("\\\"'"))]
    return f"{quote}{HIDDEN}{quote}" if quote and said.endswith(quote) and len(said) > len(quote) else HIDDEN
