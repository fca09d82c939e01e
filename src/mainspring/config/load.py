"""From flags, code, environment and file to one set of settings, and where each came from.

A setting that a source does not give is absent from that source, so no default can hide a value
further down. Only the value that wins is read and checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from mainspring.config.environment import NEVER_EMPTY, from_environment
from mainspring.config.file import from_file
from mainspring.config.keys import Given, Layer, keys, known_setting, sections
from mainspring.config.secrets import EMPTY
from mainspring.config.settings import Settings
from mainspring.duration import duration
from mainspring.errors import InvalidArgument, InvalidConfig

DEFAULT = "default"


def load(
    *,
    flags: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    file: Path | None = None,
    code_url: str | None = None,
) -> tuple[Settings, Mapping[str, str]]:
    """The settings, and the origin of each by dotted name. Flags go by dotted name too; None is unset."""
    layers: list[Layer] = [
        _from_flags(flags),
        {} if code_url is None else {"database.url": Given(code_url, "Mainspring(...)")},
        # The one place where the environment is read.
        from_environment(os.environ if environ is None else environ),
        from_file(cwd if cwd is not None else Path(), file),
    ]
    given = {key: layer[key] for layer in reversed(layers) for key in layer}
    origins = {key: given[key].origin if key in given else DEFAULT for key in keys()}
    return _built(given, origins), origins


def variables(names: Iterable[str]) -> dict[str, str]:
    """Those of this process's own variables that are named and set, for programs that it starts."""
    return {name: os.environ[name] for name in names if name in os.environ}


class Manager(NamedTuple):
    """The service manager that started this process and wants to hear of it, as systemd does."""

    address: str
    watchdog: timedelta | None
    """It wants to hear at least this often that all is well."""


def service_manager() -> Manager | None:
    """Who wants to hear of this process; None for nobody."""
    address, spell = os.environ.get("NOTIFY_SOCKET", ""), os.environ.get("WATCHDOG_USEC", "")
    if not address.startswith(("/", "@")):
        return None
    meant = os.environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
    watched = meant and spell.isascii() and spell.isdigit() and 0 < int(spell) < 10**15
    return Manager(address, timedelta(microseconds=int(spell)) if watched else None)


def unmanaged() -> dict[str, str]:
    """The environment for processes of which the service manager need not hear."""
    theirs = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
    return {name: value for name, value in os.environ.items() if name not in theirs}


def _from_flags(flags: Mapping[str, object]) -> Layer:
    for key in flags:
        if key not in keys():
            raise InvalidConfig(key, key, known_setting(key, keys()), origin="flags")
    return {key: Given(value, _flag(key)) for key, value in flags.items() if value is not None}


def _flag(key: str) -> str:
    """As it is typed: flags of the worker and the server have no prefix, others their section's name."""
    own = key.removeprefix("worker.").removeprefix("server.")
    return f"--{own.replace('.', '-').replace('_', '-')}"


def _built(given: Layer, origins: Mapping[str, str]) -> Settings:
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


def _read(key: str, given: Given) -> object:
    if given.value == "" and key in NEVER_EMPTY:
        raise InvalidConfig(key, EMPTY, NEVER_EMPTY[key], origin=given.origin)
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
