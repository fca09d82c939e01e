"""From flags, code, environment and file to one set of settings, and where each came from.

A setting that a source does not give is absent from that source, so no default can hide a value
further down. Only the value that wins is read and checked.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from mainspring.config.checks import EMPTY
from mainspring.config.settings import Settings
from mainspring.config.url import holds_password
from mainspring.duration import duration
from mainspring.errors import InvalidArgument, InvalidConfig

DEFAULT = "default"
_URL = "MAINSPRING_DATABASE_URL"
_IN_FILES = {
    f"{variable}_FILE": key
    for variable, key in (
        (_URL, "database.url"),
        ("MAINSPRING_ACCESS_OIDC_CLIENT_SECRET", "access.oidc_client_secret"),
        ("MAINSPRING_ALERTS_TO", "alerts.to"),
        ("MAINSPRING_ALERTS_SECRET", "alerts.secret"),
        ("MAINSPRING_ALERTS_PING_URL", "alerts.ping_url"),
    )
}
"""Secrets that a variable may give by the path of a file."""
_PLAIN_URL = "DATABASE_URL"
_NEVER_EMPTY = {
    "database.url": "postgresql://… or sqlite:///…; leave it out for a file in this folder",
    "access.oidc_client_secret": "a secret; leave it out for none",
    "alerts.to": "one or more notifiers; leave it out for the log alone",
    "alerts.secret": "a secret; leave it out for none",
    "alerts.ping_url": "a URL; leave it out for none",
    "worker.name": "1 to 100 printable characters; leave it out for host:pid",
}
"""Settings that must not count as left out if they are set to an empty value: webhooks would be unsigned,
alerts would be sent to no one, and jobs would go into a file, without any error."""
_SO_CLOSE = 0.92
_FILE_NAME, _PROJECT = "mainspring.toml", "pyproject.toml"
_LARGEST = 1024 * 1024
_HEADER = re.compile(r"\s*\[\s*([^\[\]#]+?)\s*\]")
_KEY_LINE = re.compile(r"\s*([\w.\s\"'-]+?)\s*=")
_SECRET_NAMES = ("secret", "password", "token", "key")


def load(
    *,
    flags: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    file: Path | None = None,
    code_url: str | None = None,
) -> tuple[Settings, Mapping[str, str]]:
    """The settings, and the origin of each by dotted name. Flags go by dotted name too; None is unset."""
    layers: list[_Layer] = [
        _from_flags(flags),
        {} if code_url is None else {"database.url": _Given(code_url, "Mainspring(...)")},
        # The one place where the environment is read.
        _from_environment(os.environ if environ is None else environ),
        _from_file(cwd if cwd is not None else Path(), file),
    ]
    given = {key: layer[key] for layer in reversed(layers) for key in layer}
    origins = {key: given[key].origin if key in given else DEFAULT for key in keys()}
    return _built(given, origins), origins


def variables(names: Iterable[str]) -> dict[str, str]:
    """Those of this process's own variables that are named and set, for programs that it starts."""
    return {name: os.environ[name] for name in names if name in os.environ}


class Manager(NamedTuple):
    """The service manager that started this process and expects messages from it, such as systemd."""

    address: str
    watchdog: timedelta | None
    """It expects a message at least this often."""


def service_manager() -> Manager | None:
    """The service manager of this process; None if there is none."""
    address, spell = os.environ.get("NOTIFY_SOCKET", ""), os.environ.get("WATCHDOG_USEC", "")
    if not address.startswith(("/", "@")):
        return None
    meant = os.environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
    watched = meant and spell.isascii() and spell.isdigit() and 0 < int(spell) < 10**15
    return Manager(address, timedelta(microseconds=int(spell)) if watched else None)


def unmanaged() -> dict[str, str]:
    """The environment for processes that send nothing to the service manager."""
    theirs = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
    return {name: value for name, value in os.environ.items() if name not in theirs}


def _from_flags(flags: Mapping[str, object]) -> _Layer:
    for key in flags:
        if key not in keys():
            raise InvalidConfig(key, key, _known_setting(key, keys()), origin="flags")
    return {key: _Given(value, _flag(key)) for key, value in flags.items() if value is not None}


def _flag(key: str) -> str:
    """As it is typed: flags of the worker and the server have no prefix, others their section's name."""
    own = key.removeprefix("worker.").removeprefix("server.")
    return f"--{own.replace('.', '-').replace('_', '-')}"


def _built(given: _Layer, origins: Mapping[str, str]) -> Settings:
    parts: dict[str, Any] = {}
    for section, config in sections().items():
        values = {
            key.removeprefix(f"{section}."): _read(key, given[key])
            for key in given
            if key.startswith(f"{section}.")
        }
        try:
            parts[section] = config(**values)
        except InvalidConfig as wrong:
            raise InvalidConfig(
                wrong.field, wrong.got, wrong.expected, origin=origins.get(wrong.field, "")
            ) from None
    return Settings(**parts)


def _read(key: str, given: _Given) -> object:
    if given.value == "" and key in _NEVER_EMPTY:
        raise InvalidConfig(key, EMPTY, _NEVER_EMPTY[key], origin=given.origin)
    try:
        return _READERS[keys()[key]](key, given.value)
    except InvalidArgument as wrong:
        raise InvalidConfig(key, wrong.got, wrong.expected, origin=given.origin) from None


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(key, value, "text")
    return value


def _whole_number(key: str, value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(key, value, "a whole number")
    return value


def _yes_or_no(key: str, value: object) -> bool:
    # The words of TOML and of compose files; "1" too, since that is how flags are often set.
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    read = words.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(read, bool):
        raise InvalidArgument(key, value, "true or false")
    return read


def _length(key: str, value: object) -> timedelta:
    if not isinstance(value, str | int | float | timedelta):
        raise InvalidArgument(key, value, 'a duration such as "90s"')
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        # A bare number in a variable is text; it means seconds, as it does in the file.
        return duration(int(value), key)
    return duration(value, key)


def _names(key: str, value: object) -> tuple[str, ...]:
    # A file that holds them may have one on each line.
    parts = [part.strip() for part in re.split(r"[,\n]", value)] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise InvalidArgument(key, value, "a list of names")
    return tuple(parts)


_READERS: dict[object, Callable[[str, object], object]] = {
    str: _text,
    int: _whole_number,
    bool: _yes_or_no,
    timedelta: _length,
    tuple[str, ...]: _names,
}


class _Given(NamedTuple):
    """A value as a source holds it, not yet read, and where exactly it stands."""

    value: object
    origin: str


_Layer = Mapping[str, _Given]


@cache
def sections() -> Mapping[str, type]:
    """The classes that make up Settings, by section."""
    return get_type_hints(Settings)


@cache
def keys() -> Mapping[str, object]:
    """The type of every setting, by dotted name."""
    return {
        f"{section}.{name}": kind
        for section, config in sections().items()
        for name, kind in get_type_hints(config).items()
    }


def _known_setting(wrong: str, known: Iterable[str]) -> str:
    """What to say was expected instead of a name that is not known."""
    close = difflib.get_close_matches(wrong, list(known), n=1)
    return f"a known setting (did you mean {close[0]}?)" if close else "a known setting"


def _from_environment(environ: Mapping[str, str]) -> _Layer:
    """What the environment sets. An empty variable sets nothing, as compose files leave many such; but what
    is `_NEVER_EMPTY`, or is to be in a file, is kept, so that it is refused."""
    known = {f"MAINSPRING_{key.replace('.', '_').upper()}": key for key in keys()}
    kept = {*_IN_FILES, *(name for name, key in known.items() if key in _NEVER_EMPTY)}
    present = {name: value for name, value in environ.items() if value or name in kept}
    for name in present:
        if name not in known and name not in _IN_FILES and _looks_like_a_setting(name, known):
            raise InvalidConfig(name, name, _known_setting(name, known), origin="environment")
    layer = {key: _Given(present[name], name) for name, key in known.items() if name in present}
    if _PLAIN_URL in present:
        layer.setdefault("database.url", _Given(present[_PLAIN_URL], _PLAIN_URL))
    for name, key in _IN_FILES.items():
        if name in present:
            variable = name.removesuffix("_FILE")
            if variable in present:
                raise InvalidConfig(key, name, f"either {variable} or {name}", origin="environment")
            layer[key] = _Given(_secret(key, present[name], name), name)
    return layer


def _looks_like_a_setting(name: str, known: Mapping[str, str]) -> bool:
    if not name.startswith("MAINSPRING_"):
        return False
    of_a_section = name.startswith(tuple(f"MAINSPRING_{section.upper()}_" for section in sections()))
    return of_a_section or bool(difflib.get_close_matches(name, known, n=1, cutoff=_SO_CLOSE))


def _secret(key: str, path: str, origin: str) -> str:
    if not path:
        raise InvalidConfig(key, EMPTY, "the path of a file; leave it out for none", origin=origin)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as problem:
        raise InvalidConfig(key, path, f"a readable file ({problem})", origin=origin) from None


def _from_file(folder: Path, file: Path | None) -> _Layer:
    """What the file sets: the one named, which must be there, or the first that is found in the folder."""
    found = _found_file(folder, file)
    return {} if found is None else _read_file(found)


def _found_file(folder: Path, file: Path | None) -> Path | None:
    """The file that settings are read from, if there is one."""
    if file is not None:
        return file
    return next((folder / name for name in (_FILE_NAME, _PROJECT) if (folder / name).exists()), None)


def _read_file(file: Path) -> _Layer:
    text = _file_text(file)
    try:
        document: Mapping[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InvalidConfig(file.name, str(problem), "valid TOML", origin=file.name) from None
    prefix: tuple[str, ...] = ()
    if file.name == _PROJECT:
        prefix = ("tool", "mainspring")
        document = _table(_table(document, "tool", file.name), "mainspring", file.name)
    lines = _LineNumbers(text, file.name, prefix)
    return dict(_settings_in(document, lines))


def _file_text(file: Path) -> str:
    try:
        # Neither a folder nor a pipe nor something huge is read in the hope that it is a file.
        if not file.is_file() or file.stat().st_size > _LARGEST:
            raise InvalidConfig("file", str(file), "a file of at most 1 MiB", origin=file.name)
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        raise InvalidConfig("file", str(file), f"a readable file in UTF-8 ({problem})") from None


def _settings_in(document: Mapping[str, object], lines: _LineNumbers) -> Iterator[tuple[str, _Given]]:
    for section in document:
        if section not in sections():
            raise InvalidConfig(
                section, section, _known_setting(section, sections()), origin=lines.at(section)
            )
        for name, value in _table(document, section, lines.at(section)).items():
            key = f"{section}.{name}"
            if key not in keys():
                # The value stays out of the message: it may be a secret under a misspelt name.
                raise InvalidConfig(key, name, _known_setting(key, keys()), origin=lines.at(section, name))
            yield key, _Given(value, lines.at(section, name))


def _table(document: Mapping[str, object], name: str, origin: str) -> Mapping[str, object]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise InvalidConfig(name, type(table), f"a table: [{name}]", origin=origin)
    return table


class _LineNumbers:
    """On which line a key stands; tomllib does not say. The innermost table or key that leads to it."""

    def __init__(self, text: str, name: str, prefix: tuple[str, ...]) -> None:
        self._name, self._prefix = name, prefix
        self._first: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            if header := _HEADER.match(line):
                table = _parts(header[1])
                self._first.setdefault(table, number)
            elif key := _KEY_LINE.match(line):
                self._first.setdefault((*table, *_parts(key[1])), number)

    def at(self, *path: str) -> str:
        whole = (*self._prefix, *path)
        while whole and whole not in self._first:
            whole = whole[:-1]
        return f"{self._name}:{self._first.get(whole, 1)}"


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))


def exposed_secret(file: Path | None, folder: Path | None = None) -> str | None:
    """A warning about the file that `load` reads, if a setting in it is a secret and every user of the
    machine may read it. None if there is nothing to warn about."""
    path = _found_file(folder if folder is not None else Path(), file)
    if path is None or not stat.S_IMODE(path.stat().st_mode) & stat.S_IROTH:
        return None
    for key, given in _from_file(path.parent, path).items():
        values = given.value if isinstance(given.value, list) else [given.value]
        named = key.rpartition(".")[2].split("_")[-1] in _SECRET_NAMES
        if any(isinstance(each, str) and each and (named or holds_password(each)) for each in values):
            return f"every user of this machine may read {key} ({given.origin}): chmod 600 {path.name}"
    return None
