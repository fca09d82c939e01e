"""Forks of this process: who has to be at rest meanwhile, and what a child must never touch.

SQLite keeps a table of the files that a process has locked, for the whole process. A child inherits the
table and not the locks: a connection that it opened would take none, and somebody else might remove the log
that it writes to. So before a fork every connection is closed, and opened again when it is next needed. A
child that inherits one all the same is told so, and never writes.

A child inherits no threads either, but event loops, sockets and locks that somebody holds. It closes none of
them (a session it ended, or a file it took off a shared epoll, would be the parent's) and makes its own.
"""

from __future__ import annotations

import os
import stat
import threading
import types
import weakref
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from mainspring.errors import UsageError, shown

T = TypeVar("T")

REST_WITHIN = 3.0
"""Seconds that a fork waits for writes to end. Heartbeats wait with them: it is well below a lease."""
LENT_WITHIN = 0.5
"""For a transaction of a handler, who may be the one that forks."""
INHERITED = (
    "this store was opened before the process was forked, and is its parent's: a child asks the app for a "
    "store of its own"
)
STOOD_STILL = 10.0
"""After which a thread goes on although the fork is not over: somebody else's hook may wait for it."""


class Restless(Protocol):
    """A thread that has to be at rest while its process forks."""

    def rest(self) -> None:
        """Be at rest soon. Called from any thread; does not wait."""


class Inherited(Protocol):
    """What a child cannot use as it is."""

    def inherit(self) -> None:
        """This process is a child now, and has one thread."""


class Rest:
    """Counts those who are at work that no fork may cut in two."""

    def __init__(self) -> None:
        self.wanted = 0
        """Forks that are about to happen: whoever is at work ends it, and begins nothing."""
        self._changed = threading.Condition()
        self._busy = 0
        self._lent = 0

    def begin(self) -> None:
        """Be at work; wait while a fork is about to happen."""
        with self._changed:
            self._changed.wait_for(lambda: not self.wanted, STOOD_STILL)
            self._busy += 1

    def end(self) -> None:
        """Be at rest."""
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Inside it is done what a child could not finish, such as to load a module: it would wait for ever
        for the thread that has begun."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Inside it the work is a handler's, and ends when the handler says so."""
        self._move(1)
        try:
            yield
        finally:
            self._move(-1)

    def ask(self, all_of_them: list[Restless]) -> None:
        """Have everybody at rest, as far as that can be had in time."""
        with self._changed:
            self.wanted += 1
        for each in all_of_them:
            each.rest()
        with self._changed:
            self._changed.wait_for(lambda: not self._busy, REST_WITHIN)
            self._changed.wait_for(lambda: not self._busy + self._lent, LENT_WITHIN if self._lent else 0)

    def go_on(self) -> None:
        """The fork has happened, or has failed."""
        with self._changed:
            self.wanted = max(0, self.wanted - 1)
            self._changed.notify_all()

    def _move(self, count: int) -> None:
        with self._changed:
            self._busy -= count
            self._lent += count
            self._changed.notify_all()


rest = Rest()
_threads: weakref.WeakSet[Restless] = weakref.WeakSet()
_inherited: weakref.WeakSet[Inherited] = weakref.WeakSet()
_listing = threading.RLock()
_kept: list[object] = []
_pid = os.getpid()
_open_at_fork: dict[int, tuple[int, int]] = {}
"""Files that were open when this process began as a copy of another: device and inode."""


def keep_at_rest(thread: Restless) -> None:
    """Have this one at rest during every fork, for as long as it lives."""
    with _listing:
        _threads.add(thread)


def tell(heir: Inherited) -> None:
    """Have this one told in every child, for as long as it lives."""
    with _listing:
        _inherited.add(heir)


@types.coroutine
def in_steps(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """What it answers, awaited; no fork happens in the middle of one of its steps, where it may have a lock
    of some library that a child would wait for."""
    thrown: BaseException | None = None
    while True:
        rest.begin()
        try:
            step = work.send(None) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            answer: T = done.value
            return answer
        finally:
            rest.end()
        try:
            yield step
            thrown = None
        except BaseException as error:  # noqa: BLE001 - not swallowed: it is thrown on
            thrown = error


def abandon(thing: object) -> None:
    """Never free this, not even when the process ends: what it would close is the parent's, too."""
    _kept.append(thing)
    with suppress(ImportError):
        import ctypes  # at the end of a process its lists are emptied; a reference that nobody has stays

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def refuse_inherited(path: str) -> None:
    """Raise UsageError if this process inherited an open connection to this file from its parent."""
    if os.getpid() != _pid:
        _look_around()  # forked by something that tells Python nothing
    if not _open_at_fork:
        return
    for file in [file for file, identity in _open_at_fork.items() if _identity(file) != identity]:
        del _open_at_fork[file]  # closed since
    with suppress(FileNotFoundError):
        found = os.stat(path)
        if (found.st_dev, found.st_ino) in _open_at_fork.values():
            raise UsageError(
                f"database: {shown(path)} was open in the process that this one was forked from, and SQLite "
                "cannot be used safely here: what is written might be lost. Before a fork, close connections "
                "of your own to this file and let transactions end; or start the process with spawn"
            )


def _identity(file: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(file)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _look_around() -> None:
    global _pid
    _pid = os.getpid()
    _open_at_fork.clear()
    try:
        files = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        files = list(range(4096))
    for file in files:
        if (identity := _identity(file)) is not None:
            _open_at_fork[file] = identity


def _before() -> None:
    with _listing:
        threads = list(_threads)
    rest.ask(threads)


def _in_child() -> None:
    global rest, _listing
    rest, _listing = Rest(), threading.RLock()  # a thread that is not here may have taken their locks
    _look_around()
    for heir in list(_inherited):
        heir.inherit()


def _in_parent() -> None:
    rest.go_on()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
