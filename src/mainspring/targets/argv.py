"""The words of a program's call, with places for a job's arguments.

A value fills its place and nothing more: no shell reads the words, and a value is never split. What is left
to guard against is a value that the program itself would take for an option.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

from mainspring.errors import InvalidArgument

MOST_WORDS, LONGEST_WORD = 1000, 100_000
_Part = tuple[str, str | None]
"""Text, and the name of the argument that follows it."""


class Argv:
    """`["pg_dump", "--file={target}", "--", "{database}"]`."""

    def __init__(self, words: Sequence[str], field: str) -> None:
        if isinstance(words, str | bytes) or not isinstance(words, Sequence):
            raise InvalidArgument(field, words, 'a list of words, such as ["rsync", "-a", "{source}"]')
        if not 0 < len(words) <= MOST_WORDS:
            raise InvalidArgument(field, f"{len(words)} words", f"1 to {MOST_WORDS} words")
        self._field = field
        self._words = [_parts(word, f"{field}[{index}]") for index, word in enumerate(words)]
        self.program = _program(words[0], self._words[0], field)
        names = [name for parts in self._words for _, name in parts if name is not None]
        self.names = tuple(dict.fromkeys(names))

    def filled(self, values: Mapping[str, object], task: str) -> list[str]:
        """The words of one job."""
        texts = {name: _text(values.get(name), f"{task}.{name}") for name in self.names}
        words: list[str] = []
        for parts in self._words:
            first = parts[0]
            if first[0] == "" and first[1] is not None and "--" not in words:
                _refuse_option(texts[first[1]], f"{task}.{first[1]}")
            words.append("".join(text + ("" if name is None else texts[name]) for text, name in parts))
        return words


def _parts(word: object, field: str) -> list[_Part]:
    if not isinstance(word, str) or "\0" in word or len(word) > LONGEST_WORD:
        raise InvalidArgument(field, word, "text without NUL characters")
    try:
        found = list(string.Formatter().parse(word))
    except ValueError:
        raise InvalidArgument(field, word, "{name} for an argument, {{ and }} for braces") from None
    for _, name, form, conversion in found:
        if name is not None and (form or conversion or not _is_name(name)):
            raise InvalidArgument(field, word, "{name} with nothing but the name of an argument in it")
    return [(text, name) for text, name, _, _ in found] or [("", None)]


def _is_name(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not name.startswith("_")


def _program(word: str, parts: Sequence[_Part], field: str) -> str:
    if any(name is not None for _, name in parts):
        raise InvalidArgument(f"{field}[0]", word, "a program that no argument can change")
    program = "".join(text for text, _ in parts)
    if not program or ("/" in program and not program.startswith("/")):
        raise InvalidArgument(f"{field}[0]", word, "a program's name, or its path from the root")
    return program


def _text(value: object, field: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidArgument(field, type(value), "text or a number")
    text = str(value)
    if "\0" in text or len(text) > LONGEST_WORD:
        raise InvalidArgument(field, text, f"at most {LONGEST_WORD} characters, none of them NUL")
    return text


def _refuse_option(text: str, field: str) -> None:
    if text.startswith("-"):
        raise InvalidArgument(field, text, 'nothing that begins with -, or a "--" before it in argv')
