"""The database on PostgreSQL: two pools of sessions, and named statements."""

from __future__ import annotations

import asyncio
import functools
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    suppress,
)
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from mainspring import forks
from mainspring.config.url import DatabaseAddress, apart
from mainspring.errors import (
    AnswerLost,
    InvalidConfig,
    MainspringError,
    StoreUnavailable,
    UsageError,
)
from mainspring.model.value import Value
from mainspring.store.migrations import migrations
from mainspring.store.postgres.lives import Lives
from mainspring.store.postgres.pooled import (
    DURABLE,
    ISOLATION,
    PLAIN,
    RELAXED,
    STEERING,
    TOLD,
    Mark,
    PooledConnection,
    steered,
)
from mainspring.store.postgres.sessions import RELEASE_WITHIN, Sessions
from mainspring.store.postgres.troubles import (
    BROKEN,
    IDEMPOTENT,
    TRIES,
    UNSTEERED,
    Broken,
    PartitionMoved,
    ReadOnly,
    connecting,
    is_refusal,
    released,
    translated,
)
from mainspring.store.statements import load, numbered, reading

if TYPE_CHECKING:
    Record = asyncpg.Record
    Connection = PoolConnectionProxy[asyncpg.Record]
    Pool = asyncpg.Pool[asyncpg.Record]

TEXTS = load("postgres")
SQL = {name: numbered(text) for name, text in TEXTS.items()}
REPEATABLE = reading(TEXTS) | IDEMPOTENT
MIGRATIONS = migrations("mainspring.store.postgres")

T = TypeVar("T")

CONNECT_WITHIN = timedelta(seconds=5)
PROBE_WITHIN = timedelta(seconds=1)
MIGRATE_WITHIN = timedelta(hours=2)
REPEATED = "insert_due_job"
"""The statement that runs once for each job. It is prepared once for each session. It must have no answer:
after a migration changes an answer, the driver prepares only its own statements again."""
LENT = 16
"""The number of handler transactions that one process has open at a time, at most. Other handlers wait."""


class Session(Value, frozen=True, kw_only=True):
    """One server process, for as long as it lives."""

    pid: int
    started: datetime
    began: datetime | None = None
    """When its transaction began, if the next transaction of the session may belong to another process."""


class Database:
    """Runs named statements. Relaxed statements, such as claims and heartbeats, may be lost if the server
    crashes: then a job is due again."""

    def __init__(self, address: DatabaseAddress, *, timeout: timedelta, size: int) -> None:
        self._url = address.url
        self.listens = address.listen is not None
        self._listen_url = address.listen
        self._pooled = address.pooled
        self.timeout = timeout
        self._size = size
        self._pools: dict[bool, Sessions] = {}
        self._lending: Pool | None = None
        self._opening = asyncio.Lock()
        self._sessions: dict[int, Session] = {}
        self.lives = Lives()
        # One session is always free for the other statements of these transactions. Otherwise they might wait
        # for each other.
        self._nesting = asyncio.Semaphore(max(1, size - 1))
        self._listening: weakref.WeakSet[asyncpg.Connection[Record]] = weakref.WeakSet()
        self._closed = False
        self._refusal: Callable[[], MainspringError] = functools.partial(
            StoreUnavailable, "the store has been closed"
        )
        self.on_hint: Callable[[int, bool], None] = _unheard
        self.on_unreadable: Callable[[Exception], Coroutine[Any, Any, bool]] = _nothing_moved
        forks.tell(self)

    def inherit(self) -> None:
        """Drop the sessions in a forked child. The sessions belong to the parent process: the child must send
        nothing on them, not even the end of a session. Their event loops share files with those of the
        parent."""
        forks.abandon((self._pools, self._lending, list(self._listening)))
        self._pools, self._lending, self._sessions = {}, None, {}
        self._closed, self._refusal = True, functools.partial(UsageError, forks.INHERITED)

    async def fetch(self, statement: str, **params: object) -> list[Record]:
        """Run one statement in its own transaction, durable on return, and answer its rows."""
        return await self._alone(statement, params, relaxed=False)

    async def each(
        self,
        statement: str,
        sets: Sequence[Mapping[str, object]],
        *,
        durable: bool = True,
        **params: object,
    ) -> list[Record]:
        """Run one statement for all these sets of parameters: each name is bound to the array of its
        values."""
        if not sets:
            return []
        return await self._alone(statement, {**params, **_arrays(sets)}, relaxed=not durable)

    async def fetch_as_of(self, life: int, statement: str, **params: object) -> list[Record]:
        """The same for a statement with numbers that were read when the count of lives was `life`."""
        self.lives.require(life)
        return await self._alone(statement, params, relaxed=False, life=life)

    async def relaxed(self, statement: str, **params: object) -> list[Record]:
        """The same for writes that may be lost in a crash of the server."""
        return await self._alone(statement, params, relaxed=True)

    async def relaxed_as_of(self, life: int, statement: str, **params: object) -> list[Record]:
        """As `relaxed` and `fetch_as_of`: with numbers of that life, and the writes may be lost."""
        self.lives.require(life)
        return await self._alone(statement, params, relaxed=True, life=life)

    @asynccontextmanager
    async def transaction(
        self, what: str, *, life: int | None = None, durable: bool = True, reads: bool = False
    ) -> AsyncIterator[Transaction]:
        """Several statements that happen together or not at all. With `reads`, a lost answer to COMMIT loses
        no write."""
        async with (
            self._connection(relaxed=not durable, life=life) as connection,
            self._committed(what, connection, relaxed=not durable, reads=reads),
        ):
            yield Transaction(self, connection)

    async def within(
        self,
        what: str,
        work: Callable[[Transaction], Coroutine[Any, Any, T]],
        *,
        durable: bool = True,
        nested: bool = False,
    ) -> T:
        """The same with a callback. Workers get a hint when the transaction has committed."""
        try:
            return await self._within(what, work, durable, nested)
        except PartitionMoved:
            # Nothing has been written, and the second try sees the new partition.
            return await self._within(what, work, durable, nested)

    async def reading(self, what: str, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        """The same for work that only reads."""
        async with self.transaction(what, reads=True) as transaction:
            return await work(transaction)

    @asynccontextmanager
    async def nesting(self, what: str) -> AsyncIterator[Transaction]:
        """The same for work that uses other sessions meanwhile, for names, ids or definitions."""
        async with self._nesting, self.transaction(what) as transaction:
            yield transaction

    def hint(self, jobs: int = 1, *, earlier: bool = False) -> None:
        """Note that so many jobs may be due, and whether they may be due before jobs that were claimed
        already."""
        self.on_hint(jobs, earlier)

    def renamed(self, identity: str) -> None:
        """Note that the database has this id now, and drop all cached numbers."""
        self.lives.end()

    async def left_out(self, error: Exception) -> bool:
        """Whether rows that cannot be read may be the cause, and have been set aside."""
        return await self.on_unreadable(error)

    def translating(self, what: str, session: Session | Mark | None) -> AbstractContextManager[None]:
        """Inside it, errors of the driver become errors of the store."""
        return translated(what, session)

    def session_of(self, connection: Connection) -> Session | Mark | None:
        """The value by which `end_session` finds this session."""
        if self._pooled:
            mark: Mark | None = getattr(connection, "mark", None)  # one that is lent has none
            return mark
        return None if connection.is_closed() else self._sessions.get(connection.get_server_pid())

    async def session_in(self, connection: Connection) -> Session | Mark | None:
        """The same as `session_of`, for a lent session that is in its transaction."""
        if not self._pooled:
            return self.session_of(connection)
        sql, _ = SQL["session"]
        with translated("session", None):
            [row] = await connection.fetch(sql)
        return Session(pid=row["pid"], started=row["backend_start"], began=row["began"])

    async def run_on(self, connection: Connection, statement: str, params: dict[str, Any]) -> list[Record]:
        """Run one statement on a session that the caller has."""
        sql, names = SQL[statement]
        session = self.session_of(connection)
        if self._pooled and isinstance(session, Mark):
            sql = session.text + sql
        with translated(statement, session):
            return await connection.fetch(sql, *[params[name] for name in names])

    async def end_session(self, session: object) -> None:
        """End a session whose connection was lost, so that it does nothing more."""
        match session:
            case Session():
                named = {"pid": session.pid, "started": session.started, "began": session.began}
                [row] = await self.fetch("end_session", **named)
            case Mark():
                [row] = await self.fetch("end_marked", mark=session.text)
            case _:
                return
        if row["gone"] is False:
            raise StoreUnavailable(f"{session} could not be ended")

    async def lend(self) -> Connection:
        """A session for statements of handlers. It does not have the settings of the store. It comes from a
        separate pool, so that handlers with long transactions block only other handlers."""
        if self._closed:
            raise self._refusal()
        async with self._opening:
            if self._lending is None:
                with connecting():
                    self._lending = await asyncpg.create_pool(
                        self._url,
                        min_size=0,
                        max_size=LENT,
                        connect=_connect,
                        timeout=CONNECT_WITHIN.total_seconds(),
                        server_settings={"application_name": "mainspring handler"},
                        **self._lent,
                    )
        with connecting():
            return await self._lending.acquire()

    async def take_back(self, connection: Connection) -> None:
        """Take a lent session back. A session that is broken or still in a transaction is closed."""
        if self._lending is None:
            return
        with released():
            if not connection.is_closed() and connection.is_in_transaction():
                connection.terminate()
            await self._lending.release(connection, timeout=RELEASE_WITHIN.total_seconds())

    async def is_down(self) -> bool:
        """Whether each host of the database refuses sessions, starts or stops, or, if there are several
        hosts, is a standby."""
        hosts = apart(self._url)
        found = await asyncio.gather(*(self._is_down(url, among=len(hosts)) for url in hosts))
        return all(found)

    async def connect(self) -> asyncpg.Connection[Record]:
        """A separate session, outside of the pools, for notifications."""
        with connecting():
            connection = await _connect(self._listen_url, timeout=CONNECT_WITHIN.total_seconds())
        self._listening.add(connection)
        return connection

    async def close(self) -> None:
        """Close every session. Running statements get as much time to end as one connect."""
        self._closed = True
        lending = () if self._lending is None else (Sessions(self._lending, self.timeout),)
        for pool in (*self._pools.values(), *lending):
            try:
                await pool.close(CONNECT_WITHIN)
            except (TimeoutError, *BROKEN):
                pool.terminate()

    async def _alone(
        self, statement: str, params: dict[str, object], *, relaxed: bool, life: int | None = None
    ) -> list[Record]:
        pool = self._pools.get(relaxed)
        kept = None if pool is None or self._pooled or self._closed else pool.at_hand()
        if pool is None or kept is None:
            return await self._slowly(statement, params, relaxed=relaxed, life=life)
        # The same as `_once`, without the handling of errors, because this runs for every inserted job.
        sql, names = SQL[statement]
        run = kept.repeat if statement == REPEATED else kept.fetch
        session = self._sessions.get(kept.connection.get_server_pid())  # before the session may be lost
        try:
            rows = await run(sql, [params[name] for name in names])
        except BaseException as error:  # noqa: BLE001 - it is translated, and raised
            try:
                return await self._in_trouble(pool, kept.connection, statement, params, session, error)
            except AnswerLost as lost:
                return await self._again(lost, statement, params, relaxed=relaxed, life=life)
        if not pool.keep(kept):
            with released():
                await pool.give_back(kept.connection, well=True)
        return rows

    async def _in_trouble(
        self,
        pool: Sessions,
        connection: Connection,
        statement: str,
        params: dict[str, object],
        session: object,
        error: BaseException,
    ) -> list[Record]:
        async with self._given(pool, connection):
            try:
                with translated(statement, session):
                    raise error
            except PartitionMoved:
                return await self.run_on(connection, statement, params)

    async def _slowly(
        self, statement: str, params: dict[str, object], *, relaxed: bool, life: int | None
    ) -> list[Record]:
        try:
            return await self._once(statement, params, relaxed=relaxed, life=life)
        except AnswerLost as lost:
            return await self._again(lost, statement, params, relaxed=relaxed, life=life)

    async def _again(
        self,
        lost: AnswerLost,
        statement: str,
        params: dict[str, object],
        *,
        relaxed: bool,
        life: int | None,
    ) -> list[Record]:
        """Repeat a statement that may be repeated. For any other statement, raise AnswerLost."""
        if statement not in REPEATABLE:
            raise lost
        for _ in range(TRIES - 1):
            if isinstance(lost.__cause__, TimeoutError):
                break  # the caller has waited for as long as a call may take
            try:
                return await self._once(statement, params, relaxed=relaxed, life=life)
            except AnswerLost as again:
                lost = again
        raise Broken(f"{statement}: the session broke") from lost

    async def _once(
        self, statement: str, params: dict[str, object], *, relaxed: bool, life: int | None
    ) -> list[Record]:
        async with self._connection(relaxed=relaxed, life=life) as connection:
            run = functools.partial(self._steered, relaxed=relaxed) if self._pooled else self.run_on
            try:
                return await run(connection, statement, params)
            except PartitionMoved:
                # Nothing has been written, and the second try sees the new partition.
                return await run(connection, statement, params)

    async def _steered(
        self, connection: Connection, statement: str, params: dict[str, Any], *, relaxed: bool
    ) -> list[Record]:
        mark = self.session_of(connection)
        if statement in PLAIN and isinstance(mark, Mark) and mark.plain:
            return await self.run_on(connection, statement, params)
        async with self._committed(statement, connection, relaxed=relaxed):
            return await self.run_on(connection, statement, params)

    @asynccontextmanager
    async def _committed(
        self, what: str, connection: Connection, *, relaxed: bool, reads: bool = False
    ) -> AsyncIterator[None]:
        """A transaction. If an answer is lost before COMMIT was sent, nothing has been committed."""
        committing = False
        try:
            with translated(what, self.session_of(connection)):
                async with self._begun(connection, relaxed=relaxed):
                    yield
                    committing = not reads
        except AnswerLost as lost:
            if committing:
                raise
            raise Broken(f"{what}: the session broke before its transaction was committed") from lost

    def _begun(self, connection: Connection, *, relaxed: bool) -> AbstractAsyncContextManager[object]:
        mark = self.session_of(connection)
        if not isinstance(mark, Mark):
            return connection.transaction()
        return steered(connection, mark, RELAXED if relaxed else DURABLE)

    async def _within(
        self, what: str, work: Callable[[Transaction], Coroutine[Any, Any, T]], durable: bool, nested: bool
    ) -> T:
        opened = self.nesting(what) if nested else self.transaction(what, durable=durable)
        async with opened as transaction:
            answer = await work(transaction)
        if transaction.hinted:
            self.hint(transaction.hinted, earlier=transaction.earlier)
        return answer

    async def _is_down(self, url: str, *, among: int) -> bool:
        try:
            connection = await _connect(
                url,
                timeout=PROBE_WITHIN.total_seconds(),
                statement_cache_size=0,
            )
        except asyncpg.TargetServerAttributeNotMatched:
            return among > 1
        except (asyncpg.PostgresError, *BROKEN) as error:
            return is_refusal(error)
        try:
            return among > 1 and bool(await connection.fetchval(TEXTS["is_standby"]))
        except (asyncpg.PostgresError, *BROKEN):
            return False
        finally:
            connection.terminate()

    @asynccontextmanager
    async def _connection(self, relaxed: bool, life: int | None = None) -> AsyncIterator[Connection]:
        pool = self._pools.get(relaxed)
        if pool is None or self._closed:
            pool = await self._pool(relaxed)
        with connecting():
            connection = await pool.take()
        async with self._given(pool, connection):
            self.lives.require(life)
            yield connection

    @asynccontextmanager
    async def _given(self, pool: Sessions, connection: Connection) -> AsyncIterator[None]:
        """Inside it, the caller has the session. At the end the session goes back to the pool."""
        well = False
        try:
            yield
            well = True
        except (AnswerLost, Broken, ReadOnly):
            with suppress(asyncpg.InterfaceError):  # the pool has dropped it already
                # The session may still run a statement, so no other caller may get it.
                connection.terminate()
            if self._pooled:
                self.lives.end()  # a pooler does not report that another server answers now
            raise
        finally:
            with released():
                await pool.give_back(connection, well=well)

    async def _pool(self, relaxed: bool) -> Sessions:
        if self._closed:
            raise self._refusal()
        if relaxed not in self._pools:
            async with self._opening:
                if relaxed not in self._pools:
                    self._pools[relaxed] = Sessions(await self._open(relaxed), self.timeout)
        return self._pools[relaxed]

    async def _open(self, relaxed: bool) -> Pool:
        if self._pooled:
            how: dict[str, Any] = {
                "server_settings": TOLD,
                "statement_cache_size": 0,
                "connection_class": PooledConnection,
                "init": PooledConnection.learn,
            }
        else:
            settings = {
                **TOLD,
                **(RELAXED if relaxed else DURABLE),
                "default_transaction_isolation": ISOLATION,
            }
            how = {"server_settings": settings, "init": self._greet}
        with connecting():
            return await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=self._size,
                connect=_connect,
                timeout=CONNECT_WITHIN.total_seconds(),
                command_timeout=self.timeout.total_seconds(),
                reset=_keep,
                **how,
            )

    @property
    def _lent(self) -> dict[str, Any]:
        # Behind a pooler, a reset would reset the next session.
        return {"statement_cache_size": 0, "reset": _keep} if self._pooled else {"init": self._remember}

    async def _greet(self, connection: asyncpg.Connection[Record]) -> None:
        row = await self._remember(connection)
        if row is not None and row["plans"] != STEERING["plan_cache_mode"]:
            raise InvalidConfig("database.url", "a session without the settings it was asked for", UNSTEERED)
        if row is not None:
            self.lives.meet((row["server_started"], row["database"]))

    async def _remember(self, connection: asyncpg.Connection[Record]) -> Record | None:
        sql, _ = SQL["session"]
        row = await connection.fetchrow(sql)
        if row is not None:
            self._sessions[row["pid"]] = Session(pid=row["pid"], started=row["backend_start"])
        return row


class Transaction:
    """Named statements on one connection, inside one transaction."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self._database = database
        self._connection = connection
        self.hinted = 0
        self.earlier = False

    async def fetch(self, statement: str, **params: object) -> list[Record]:
        """Run one statement and answer its rows."""
        return await self._database.run_on(self._connection, statement, params)

    async def each(
        self, statement: str, sets: Sequence[Mapping[str, object]], **params: object
    ) -> list[Record]:
        """Run one statement for all these sets of parameters: each name is bound to the array of its
        values."""
        return await self.fetch(statement, **params, **_arrays(sets)) if sets else []

    def hint(self, jobs: int = 1, *, earlier: bool = False) -> None:
        """Note that so many jobs may be due when the transaction has committed."""
        self.hinted += jobs
        self.earlier |= earlier

    async def ask(self, sql: str, args: Sequence[object]) -> list[Record]:
        """Run one statement that has no name, and answer its rows."""
        return await self._connection.fetch(sql, *args)

    async def script(self, text: str) -> None:
        """Run a text of several statements, such as a migration, without a time limit."""
        # An index on a large history takes long, and must not be cancelled by a timeout at every start.
        await self._connection.execute("SET LOCAL statement_timeout = 0")
        await self._connection.execute(text, timeout=MIGRATE_WITHIN.total_seconds())

    async def copy(self, table: str, columns: list[str], records: Iterator[tuple[object, ...]]) -> None:
        """Write many rows into a table with COPY."""
        await self._connection.copy_records_to_table(
            table, schema_name="mainspring", columns=columns, records=records
        )


def _arrays(sets: Sequence[Mapping[str, object]]) -> dict[str, object]:
    return {name: [each[name] for each in sets] for name in sets[0]}


def _unheard(jobs: int, earlier: bool) -> None:
    """The default for hints: no worker gets a hint."""


async def _nothing_moved(error: Exception) -> bool:
    """The default: no rows are set aside."""
    return False


async def _connect(*args: Any, **options: Any) -> asyncpg.Connection[Record]:
    return await forks.in_steps(asyncpg.connect(*args, **options))


async def _keep(_connection: object) -> None:
    """Replaces the reset of the pool: sessions keep no state, and a reset costs a round trip."""
