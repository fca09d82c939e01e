"""What a process was started in: put right where it can be, and said where it is too tight."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper

FEW_FILES = 256
"""Files that a serving process should be allowed: connections, children and their pipes, the user's own."""


def speak_utf8() -> None:
    """Read and write UTF-8 where the locale is plain C and Python was told not to help itself: what is stored
    is text, whatever the terminal is."""
    if _is_utf8():
        return
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def typed(words: Sequence[str]) -> list[str]:
    """The command line as it was typed: bytes that the locale could not read are UTF-8. Those that are not
    even that stay as they are, and are refused where they are used."""
    if _is_utf8():
        return list(words)
    return [os.fsencode(each).decode("utf-8", "surrogateescape") for each in words]


def surroundings() -> Iterator[str]:
    """What a serving process may run out of."""
    try:
        import resource
    except ImportError:  # not on every system
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        yield f"only {soft} files may be open at once (ulimit -n), so jobs may fail: allow {FEW_FILES}"


def _is_utf8() -> bool:
    return sys.getfilesystemencoding().lower().replace("-", "") == "utf8"
