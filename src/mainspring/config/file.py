"""Settings from mainspring.toml, or from [tool.mainspring] in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from mainspring.config.keys import Given, Layer, keys, known_setting, sections
from mainspring.errors import InvalidConfig

NAME, PROJECT = "mainspring.toml", "pyproject.toml"
_LARGEST = 1024 * 1024
_HEADER = re.compile(r"\s*\[\s*([^\[\]#]+?)\s*\]")
_KEY = re.compile(r"\s*([\w.\s\"'-]+?)\s*=")


def from_file(folder: Path, file: Path | None) -> Layer:
    """What the file sets: the one named, which must be there, or the first that is found in the folder."""
    found = found_file(folder, file)
    return {} if found is None else _read(found)


def found_file(folder: Path, file: Path | None) -> Path | None:
    """The file that settings are read from, if there is one."""
    if file is not None:
        return file
    return next((folder / name for name in (NAME, PROJECT) if (folder / name).exists()), None)


def _read(file: Path) -> Layer:
    text = _text(file)
    try:
        document: Mapping[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InvalidConfig(file.name, str(problem), "valid TOML", origin=file.name) from None
    prefix: tuple[str, ...] = ()
    if file.name == PROJECT:
        prefix = ("tool", "mainspring")
        document = _table(_table(document, "tool", file.name), "mainspring", file.name)
    lines = _Lines(text, file.name, prefix)
    return dict(_settings(document, lines))


def _text(file: Path) -> str:
    try:
        # Neither a folder nor a pipe nor something huge is read in the hope that it is a file.
        if not file.is_file() or file.stat().st_size > _LARGEST:
            raise InvalidConfig("file", str(file), "a file of at most 1 MiB", origin=file.name)
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        raise InvalidConfig("file", str(file), f"a readable file in UTF-8 ({problem})") from None


def _settings(document: Mapping[str, object], lines: _Lines) -> Iterator[tuple[str, Given]]:
    for section in document:
        if section not in sections():
            raise InvalidConfig(
                section, section, known_setting(section, sections()), origin=lines.at(section)
            )
        for name, value in _table(document, section, lines.at(section)).items():
            key = f"{section}.{name}"
            if key not in keys():
                # The value stays out of the message: it may be a secret under a misspelt name.
                raise InvalidConfig(key, name, known_setting(key, keys()), origin=lines.at(section, name))
            yield key, Given(value, lines.at(section, name))


def _table(document: Mapping[str, object], name: str, origin: str) -> Mapping[str, object]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise InvalidConfig(name, type(table), f"a table: [{name}]", origin=origin)
    return table


class _Lines:
    """On which line a key stands; tomllib does not say. The innermost table or key that leads to it."""

    def __init__(self, text: str, name: str, prefix: tuple[str, ...]) -> None:
        self._name, self._prefix = name, prefix
        self._first: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            if header := _HEADER.match(line):
                table = _parts(header[1])
                self._first.setdefault(table, number)
            elif key := _KEY.match(line):
                self._first.setdefault((*table, *_parts(key[1])), number)

    def at(self, *path: str) -> str:
        whole = (*self._prefix, *path)
        while whole and whole not in self._first:
            whole = whole[:-1]
        return f"{self._name}:{self._first.get(whole, 1)}"


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))
