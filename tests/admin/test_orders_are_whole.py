"""An order that is one transaction and its entry in the audit log: both are there, or neither is."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from mainspring import Mainspring
from mainspring.admin.admin import Admin
from mainspring.clock import SystemClock
from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.audit_log import AuditFilter, AuditPhase, NewAuditEntry
from mainspring.model.job import JobState
from mainspring.store.opener import open_store
from mainspring.store.sqlite import thread
from mainspring.testing.clock import ManualClock
from tests.admin.test_on_record import CALLS, filled, on_record
from tests.support.management import admin_of

FULL = "the log is full"


@pytest.fixture
def app(database_url: str, clock: ManualClock) -> Iterator[Mainspring]:
    app = filled(database_url, clock)
    yield app
    app.close()


class Database:
    """The rows behind a store, as another program sees them."""

    def __init__(self, url: str) -> None:
        self._url = url

    def do(self, sqlite: str, postgres: str) -> None:
        if self._url.startswith("sqlite"):
            with closing(sqlite3.connect(self._url.removeprefix("sqlite://"))) as connection:
                connection.executescript(sqlite)
        else:
            asyncio.run(self._on_server(lambda connection: connection.execute(postgres)))

    def rows(self) -> dict[str, list[str]]:
        """Every row of every table; of ids that were taken ahead nothing is said."""
        if self._url.startswith("sqlite"):
            with closing(sqlite3.connect(self._url.removeprefix("sqlite://"))) as connection:
                tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
                return {
                    name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"').fetchall()))
                    for (name,) in tables
                    if name not in AHEAD
                }
        return asyncio.run(self._on_server(_all_rows))

    async def _on_server(self, work: Callable[[asyncpg.Connection], Any]) -> Any:
        connection = await asyncpg.connect(self._url)
        try:
            return await work(connection)
        finally:
            await connection.close()


#: What is put on record before an order is carried out, and changes nothing: numbers for names.
AHEAD = (
    "queues",
    "tasks",
    "priority_levels",
    "limit_keys",
    "lines",
    "job_ids",
    "sqlite_sequence",
    "calendars",
    "definitions",
)


async def _all_rows(connection: asyncpg.Connection) -> dict[str, list[str]]:
    tables = await connection.fetch(
        "SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'mainspring' AND c.relkind = 'r'"
    )
    return {
        row["name"]: sorted(map(repr, await connection.fetch(f"SELECT * FROM {row['name']}")))
        for row in tables
        if row["name"].removeprefix("mainspring.") not in AHEAD
    }


def test_where_no_entry_can_be_written_no_order_is_carried_out(app: Mainspring, database_url: str) -> None:
    database = Database(database_url)
    admin = app.admin("ada")
    for noun, name, _, call in CALLS:
        database.do(
            f"CREATE TRIGGER full BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, '{FULL}'); END",
            "CREATE FUNCTION pg_temp_full() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION '{FULL}'; END $$;"
            "CREATE TRIGGER full_log BEFORE INSERT ON mainspring.audit_log"
            " FOR EACH STATEMENT EXECUTE FUNCTION pg_temp_full()",
        )
        before = database.rows()
        if _changes_something(noun, name):
            with pytest.raises(StoreError, match=FULL):
                call(admin)
        else:
            call(admin)
        assert database.rows() == before, (noun, name)
        database.do(
            "DROP TRIGGER full",
            # An id that was given to what did not happen is not given again; the calls below name ids.
            "DROP TRIGGER full_log ON mainspring.audit_log; DROP FUNCTION pg_temp_full();"
            + "".join(
                f"SELECT setval('mainspring.{each}_id_seq',"
                f" (SELECT coalesce(max(id), 0) + 1 FROM mainspring.{each}), false);"
                for each in ("backfills", "tokens")
            ),
        )
        call(admin)
    assert len(on_record(app)) == len(CALLS)


def _changes_something(noun: str, name: str) -> bool:
    """A purge that finds nothing, and a retry of a workflow in which nothing failed, are on record
    afterwards."""
    return (noun, name) not in {("dead_letters", "apurge_page"), ("workflows", "aretry")}


DIE = """
import os, sys
from mainspring.store import audit_log
from tests.admin.test_orders_are_whole import opened

def die(*_):
    os._exit(9)

url, where = sys.argv[1:]
app = opened(url)
if where == "before":
    real = audit_log.Signature.write

    async def write(self, tx, answer):
        await real(self, tx, answer)
        die()

    audit_log.Signature.write = write
else:
    from mainspring.admin import order
    order.OneTransaction.committed = property(lambda self: False, lambda self, value: value and die())
app.admin("ada").jobs.cancel(3)
"""


def opened(url: str) -> Mainspring:
    """An app of another process."""
    return Mainspring(url)


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_process_that_dies_leaves_both_or_neither(app: Mainspring, database_url: str, where: str) -> None:
    died = subprocess.run([sys.executable, "-c", DIE, database_url, where], env=os.environ, check=False)

    assert died.returncode == 9
    state = app.jobs.get(3).job.state
    found = [(each.entry.action, each.outcome) for each in on_record(app)]
    if where == "before":
        assert (state is JobState.CANCELLED, found) == (False, [])
    else:
        assert (state is JobState.CANCELLED, found) == (True, [("jobs.cancel", "done")])


def _lost(monkeypatch: pytest.MonkeyPatch, url: str, *, committed: bool) -> None:
    """Have the answer to the next COMMIT be lost: when it has been done, or in place of it."""
    if url.startswith("sqlite"):
        real = thread._commit

        def commit(connection: sqlite3.Connection, *, changed: bool) -> None:
            if not changed:
                return real(connection, changed=changed)
            monkeypatch.setattr(thread, "_commit", real)
            connection.execute("COMMIT" if committed else "ROLLBACK")
            raise AnswerLost("commit")

        monkeypatch.setattr(thread, "_commit", commit)
        return
    execute = asyncpg.Connection.execute

    async def broken(self: Any, query: str, *args: Any, **options: Any) -> Any:
        if query != "COMMIT;":
            return await execute(self, query, *args, **options)
        monkeypatch.setattr(asyncpg.Connection, "execute", execute)
        await execute(self, query if committed else "ROLLBACK;")
        self.terminate()
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    monkeypatch.setattr(asyncpg.Connection, "execute", broken)


@pytest.mark.parametrize("committed", [True, False], ids=["done", "undone"])
@pytest.mark.parametrize("order", ["cancel", "pause", "queue"])
def test_where_the_answer_is_lost_the_log_says_what_happened(
    app: Mainspring, database_url: str, monkeypatch: pytest.MonkeyPatch, order: str, committed: bool
) -> None:
    admin = app.admin("ada")
    call: Callable[[], object] = {
        "cancel": lambda: admin.jobs.cancel(3),
        "pause": lambda: admin.schedules.pause("nightly"),
        "queue": lambda: admin.queues.pause("mail"),
    }[order]
    _lost(monkeypatch, database_url, committed=committed)

    with pytest.raises(AnswerLost):
        call()

    happened = {
        "cancel": lambda: admin.jobs.get(3).job.state is JobState.CANCELLED,
        "pause": lambda: admin.schedules.get("nightly").schedule.paused_at is not None,
        "queue": lambda: any(each.pause for each in admin.queues.all()),
    }[order]()
    assert happened is committed
    assert [each.outcome for each in on_record(app)] == (["done"] if committed else [])
    assert admin.audit_log.verify().sound


def test_an_error_after_the_commit_does_not_make_it_a_failure(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mainspring.store.queues import Queues

    async def hangs(self: Queues) -> None:
        raise StoreUnavailable("a claim hangs")

    monkeypatch.setattr(Queues, "_claims_have_ended", hangs)
    with pytest.raises(StoreUnavailable):
        app.admin("ada").queues.pause("mail")

    [action] = on_record(app)
    assert (action.outcome, action.result) == ("done", {"changed": True})
    assert [each.name for each in app.queues.all() if each.pause] == ["mail"]


def test_the_chain_holds_with_orders_at_the_same_time(
    database_url: str, app: Mainspring, run: Callable[[Any], Any]
) -> None:
    """Of several processes, and beside entries that are appended alone."""
    refused = NewAuditEntry(
        phase=AuditPhase.REFUSED, action="jobs.cancel", actor="eve", role="viewer", via="token"
    )

    async def work() -> None:
        stores = [open_store(database_url, clock=SystemClock()) for _ in range(3)]
        try:
            admins = [admin_of(each, SystemClock(), actor=f"a{place}") for place, each in enumerate(stores)]

            async def orders_of(admin: Admin, place: int) -> None:
                for turn in range(8):
                    queue = f"q{(place + turn) % 3}"
                    await admin.queues.apause(queue)
                    await stores[place].audit_log.append([refused], at=None)
                    await admin.queues.aresume(queue)

            await asyncio.gather(
                *(orders_of(admin, place) for place, admin in enumerate(admins) for _ in range(2))
            )
        finally:
            for each in stores:
                await each.close()

    run(work())

    found = app.admin().audit_log.verify()
    assert (found.sound, found.entries) == (True, 3 * 2 * 8 * 3)
    log = app.admin().audit_log.find(AuditFilter(action="queues.pause", limit=1000))
    assert {each.outcome for each in log} == {"done"}
