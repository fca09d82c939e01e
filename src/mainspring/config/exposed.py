"""Secrets in a settings file that others on the machine may read."""

from __future__ import annotations

import stat
from pathlib import Path

from mainspring.config.file import found_file, from_file
from mainspring.config.url import holds_password

_SECRET = ("secret", "password", "token", "key")


def exposed_secret(file: Path | None, folder: Path | None = None) -> str | None:
    """What to tell of the file that `load` reads: which setting of it is a secret that anybody may read.
    None when there is none, or nobody else may."""
    path = found_file(folder if folder is not None else Path(), file)
    if path is None or not stat.S_IMODE(path.stat().st_mode) & stat.S_IROTH:
        return None
    for key, given in from_file(path.parent, path).items():
        values = given.value if isinstance(given.value, list) else [given.value]
        named = key.rpartition(".")[2].split("_")[-1] in _SECRET
        if any(isinstance(each, str) and each and (named or holds_password(each)) for each in values):
            return f"everybody on this machine may read {key} ({given.origin}): chmod 600 {path.name}"
    return None
