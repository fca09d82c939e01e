"""Linux says when a file is written to, to whoever asks; elsewhere one has to look."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import sys

MODIFIED, GONE = 0x2, 0x8000
"""Of inotify(7): IN_MODIFY, and IN_IGNORED, which is told when a file that was watched is no more."""
NOT_BLOCKING = 0o4000 | 0o2000000
"""IN_NONBLOCK and IN_CLOEXEC."""
_EVENT = struct.Struct("iIII")
_ROOM = 4096


class Stirs:
    """An event that is set whenever the file has been written to. Belongs to the running event loop."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(file, self._read)
        self.event = asyncio.Event()
        self.gone = False

    def close(self) -> None:
        try:
            self._loop.remove_reader(self._file)
        finally:
            os.close(self._file)

    def _read(self) -> None:
        said = os.read(self._file, _ROOM)
        self.event.set()
        at = 0
        while at < len(said):
            _, mask, _, name = _EVENT.unpack_from(said, at)
            self.gone = self.gone or bool(mask & GONE)
            at += _EVENT.size + name


def stirs(path: str) -> Stirs | None:
    """Watch this file; None where that cannot be had."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    file = libc.inotify_init1(NOT_BLOCKING)
    if file < 0:
        return None
    if libc.inotify_add_watch(file, os.fsencode(path), MODIFIED) < 0:
        os.close(file)
        return None
    try:
        return Stirs(file)
    except BaseException as error:
        os.close(file)
        if isinstance(error, NotImplementedError):  # an event loop that knows no files
            return None
        raise
