"""Hints on SQLite: look whether another process has committed, when the system reports a write.

Linux reports writes to a file to processes that ask for it. On other systems the file is looked at.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta

from mainspring.store.sqlite.connection import MEMORY, Session, wal
from mainspring.store.sqlite.database import Database
from mainspring.waiting import pause, until

LOOK_EVERY = timedelta(milliseconds=20)
"""The interval of polls on systems that do not report writes."""
LISTEN = timedelta(milliseconds=50)
"""How long one pass waits for a write: it holds up the end of the process."""
PASSES = 20
"""Without a write, after which one looks all the same."""
AGAIN = (*(timedelta(milliseconds=each) for each in (1, 2, 4, 8, 16, 32)), *[LISTEN] * 19)
"""A write is seen before its commit can be: when to look for that. A disk may take a second for it."""
MOMENT = timedelta(milliseconds=1)
"""What a commit takes at least; and so looks are never closer than this, however much is written."""
REST = timedelta(milliseconds=2)
MODIFIED, GONE = 0x2, 0x8000
"""Of inotify(7): IN_MODIFY, and IN_IGNORED, which is reported when a watched file is deleted."""
NOT_BLOCKING = 0o4000 | 0o2000000
"""IN_NONBLOCK and IN_CLOEXEC."""
_EVENT = struct.Struct("iIII")
_ROOM = 4096


class SQLiteWaker:
    """Calls `on_hint` when another connection has committed or this store has made jobs due; the
    first look always hints, for what happened before it."""

    name = "waker"
    deaf = None

    def __init__(self, database: Database, on_hint: Callable[[], None]) -> None:
        self._database = database
        self._on_hint = on_hint
        self._log = wal(database.path)
        self._seen: tuple[int, int] | None = None
        self._stirs: Stirs | None = None
        self._quiet = 0
        self._again: Iterator[timedelta] = iter(AGAIN)
        """When to look next; at its end, nothing is expected."""

    async def tick(self) -> timedelta:
        if self._stirs is None or self._stirs.gone:
            return await self._look_about()
        rest = next(self._again, None)
        if await until(self._stirs.event, rest or LISTEN):
            self._stirs.event.clear()
            self._again = iter(AGAIN)
            await pause(MOMENT)
        elif rest is None and self._quiet < PASSES:
            self._quiet += 1
            return timedelta()
        if not await self._changed():
            return timedelta()
        # This may be the commit before the reported write: the commit of that write is not reported again.
        self._again = iter(AGAIN)
        return REST

    async def close(self) -> None:
        """Nothing but the watch is kept between two looks."""
        if self._stirs is not None:
            self._stirs.close()
            self._stirs = None

    async def _look_about(self) -> timedelta:
        """Poll once, then try to watch the log: it exists after the first read."""
        await self._changed()
        await self.close()
        if self._database.path != MEMORY:
            self._stirs = stirs(self._log)
            self._again = iter(AGAIN)  # for writes from before the watch
        return LOOK_EVERY if self._stirs is None else timedelta()

    async def _changed(self) -> bool:
        self._quiet = 0
        seen = await self._database.read(_data_version), self._database.hints
        if seen == self._seen:
            return False
        self._seen = seen
        self._on_hint()
        return True


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


def _data_version(session: Session) -> int:
    version: int = session.row("data_version")["data_version"]
    return version
