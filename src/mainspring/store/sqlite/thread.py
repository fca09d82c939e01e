"""A thread that owns one connection, takes calls from any event loop and commits them in groups.

During a fork the thread is at rest and its connection closed: see `forks`."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from mainspring import forks
from mainspring.errors import AnswerLost, MainspringError, StoreUnavailable, UsageError
from mainspring.store.sqlite.connection import Session, begin, is_full, is_io_error, set_durable, translated

T = TypeVar("T")

GROUP = 256
"""Calls that share one commit at most."""
IN_MEMORY = (
    "a database in memory is the process's that made it; a child that was forked from it has none: use a file"
)


@dataclass(frozen=True, slots=True)
class Call:
    """Work for the thread, and the future of its caller."""

    work: Callable[[Session], object]
    durable: bool
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    last: bool = False
    """Not to be worked on: the thread ends here."""


class Nudge:
    """A call without work: the thread checks whether a fork is about to happen."""

    last = False


NUDGE = cast("Call", Nudge())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call."""

    value: object = None
    error: Exception | None = None


class ConnectionThread:
    """Runs calls in the order they came, each whole or not at all.

    `begin` opens a transaction. `afterwards` is called with the connection after each group, when
    the callers have their answers. A connection that is `kept` has the database in it: it is never
    closed and opened again.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], sqlite3.Connection],
        *,
        begin: str,
        afterwards: Callable[[sqlite3.Connection], None] | None = None,
        kept: bool = False,
    ) -> None:
        self._name = name
        self._connect = connect
        self._begin = begin
        self._afterwards = afterwards
        self._kept = kept
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._refusal: Callable[[], MainspringError] = partial(StoreUnavailable, "the store is closed")
        self._connection: sqlite3.Connection | None = None
        self._durable: bool | None = None
        self.hints = 0
        """How many transactions so far may have made jobs due."""
        self.opened = 0
        """How many connections it has had so far."""
        forks.keep_at_rest(self)
        forks.tell(self)

    async def run(self, work: Callable[[Session], T], *, durable: bool) -> T:
        """Have the work done in a transaction. A caller that is cancelled does not stop it."""
        loop = asyncio.get_running_loop()
        call = Call(work, durable, loop, loop.create_future())
        with self._lock:
            if self._closed:
                raise self._refusal()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
            self._calls.put(call)
        answer: T = await call.future
        return answer

    async def close(self) -> None:
        """Finish what was asked for, then let go of the connection and the thread."""
        loop = asyncio.get_running_loop()
        stop = Call(lambda session: None, False, loop, loop.create_future(), last=True)
        with self._lock:
            thread, already, self._closed = self._thread, self._closed, True
            if thread is None or already:
                return
            self._calls.put(stop)
        await stop.future
        thread.join()

    def rest(self) -> None:
        """Let go of the connection soon, and open it again when the fork is over."""
        if self._connection is not None:
            self._calls.put(NUDGE)

    def inherit(self) -> None:
        """The thread and what was asked of it are the parent's, and so is the connection, if it was open."""
        if self._connection is not None:
            forks.abandon(self._connection)
        self._connection = self._durable = self._thread = None
        self._lock, self._calls = threading.Lock(), SimpleQueue()
        self._closed, self._refusal = True, partial(UsageError, IN_MEMORY if self._kept else forks.INHERITED)

    def _serve(self) -> None:
        stop: Call | None = None
        while stop is None:
            group, stop = self._take()
            if group:
                _answer(group, self._perform(group))
                self._after()
            if forks.rest.wanted:
                self._stand_still()
        self._drop()
        _answer([stop], [Outcome()])

    def _take(self) -> tuple[list[Call], Call | None]:
        group: list[Call] = []
        call = self._calls.get()
        while not call.last:
            if call is not NUDGE:
                group.append(call)
            if len(group) == GROUP:
                return group, None
            try:
                call = self._calls.get_nowait()
            except Empty:
                return group, None
        return group, call

    def _perform(self, group: list[Call]) -> list[Outcome]:
        together = self._together(group) if len(group) > 1 else None
        return [self._alone(call) for call in group] if together is None else together

    def _alone(self, call: Call) -> Outcome:
        try:
            with self._transaction(durable=call.durable) as session:
                return Outcome(value=call.work(session))
        except Exception as error:  # noqa: BLE001  not swallowed: the caller gets it
            return Outcome(error=translated(error, self._connection))

    def _together(self, group: list[Call]) -> list[Outcome] | None:
        """All in one transaction, or None when it ran out of room: then one big call must not cost
        the others theirs, and each is tried alone."""
        try:
            with self._transaction(durable=any(call.durable for call in group)) as session:
                return [self._one_of_many(call, session) for call in group]
        except Exception as error:  # noqa: BLE001  not swallowed: the callers get it
            if isinstance(error, sqlite3.Error) and is_full(error):
                return None
            return [Outcome(error=translated(error, self._connection)) for _ in group]

    def _one_of_many(self, call: Call, session: Session) -> Outcome:
        connection = self._open()
        connection.execute("SAVEPOINT call")
        try:
            outcome = Outcome(value=call.work(session))
        except Exception as error:
            if not connection.in_transaction:
                raise  # SQLite has undone the whole group
            connection.execute("ROLLBACK TO call")
            outcome = Outcome(error=translated(error, connection))
        connection.execute("RELEASE call")
        return outcome

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[Session]:
        connection = self._open()
        while not self._begun(connection, durable=durable):
            self._stand_still()
            connection = self._open()
        session = Session(connection)
        before = connection.total_changes
        try:
            yield session
            _commit(connection, changed=connection.total_changes != before)
        except BaseException:
            self._undo(connection)
            raise
        self.hints += session.hinted

    def _begun(self, connection: sqlite3.Connection, *, durable: bool) -> bool:
        if forks.rest.wanted:
            return False
        if durable is not self._durable:
            set_durable(connection, durable)
            self._durable = durable
        return begin(connection, self._begin)

    def _undo(self, connection: sqlite3.Connection) -> None:
        # On some errors SQLite has rolled back already; a second ROLLBACK would hide the first error.
        if connection.in_transaction:
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                self._drop()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            forks.rest.begin()
            try:
                self._connection = self._connect()
            except BaseException:
                forks.rest.end()
                raise
            self.opened += 1
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            try:
                self._connection.close()
            finally:
                self._connection = self._durable = None
                forks.rest.end()

    def _stand_still(self) -> None:
        """Until the fork is over."""
        if not self._kept:
            self._drop()
        elif self._connection is not None:
            forks.rest.end()
            forks.rest.begin()

    def _after(self) -> None:
        if self._afterwards is not None and self._connection is not None:
            self._afterwards(self._connection)


def _commit(connection: sqlite3.Connection, *, changed: bool) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if changed and is_io_error(error) and not is_full(error):
            # The frames may be on the disk or not: after a crash, recovery decides.
            raise AnswerLost("commit") from error
        raise


def _answer(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> None:
    """Wake each event loop once for all its callers. A loop may be gone by now; its work is done."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Call, Outcome]]] = {}
    for call, outcome in zip(calls, outcomes, strict=True):
        by_loop.setdefault(call.loop, []).append((call, outcome))
    for loop, answers in by_loop.items():
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: list[tuple[Call, Outcome]]) -> None:
    for call, outcome in answers:
        if call.future.done():
            continue  # its caller was cancelled
        if outcome.error is not None:
            call.future.set_exception(outcome.error)
        else:
            call.future.set_result(outcome.value)
