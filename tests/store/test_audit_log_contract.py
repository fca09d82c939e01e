"""The contract of the audit log: it only grows, in one chain, and whoever changes it is found out."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import asyncpg
import pytest

from mainspring.admin.audit_log import AuditLog
from mainspring.clock import Clock
from mainspring.errors import StoreError
from mainspring.model.audit_log import AuditEntry, AuditFilter, AuditPhase, NewAuditEntry
from mainspring.store.audit_log import START, digest_of
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from mainspring.testing.clock import ManualClock
from tests.support.desk import SECOND, Desk
from tests.support.management import admin_of

ORDER = NewAuditEntry(
    phase=AuditPhase.ORDERED,
    action="jobs.cancel",
    actor="ada",
    role="operator",
    via="token",
    object="42",
    details=b'{"force":true}',
    address="127.0.0.1",
)


def entry(**fields: Any) -> NewAuditEntry:
    return NewAuditEntry(
        **{**{name: getattr(ORDER, name) for name in NewAuditEntry.__struct_fields__}, **fields}
    )


def audit_log(store: Store, clock: Clock) -> AuditLog:
    return admin_of(store, clock).audit_log


def append(desk: Desk, *acts: NewAuditEntry) -> list[AuditEntry]:
    return desk.run(desk.store.audit_log.append(acts, at=desk.now))


def test_entries_are_numbered_and_tied_to_the_one_before(desk):
    [first] = append(desk, ORDER)
    desk.advance(SECOND)
    second, third = append(desk, entry(phase=AuditPhase.DONE, order=first.id, details=b"{}"), ORDER)

    assert [first.id, second.id, third.id] == [1, 2, 3]
    assert first.digest == digest_of(START, first)
    assert second.digest == digest_of(first.digest, second)
    assert third.digest == digest_of(second.digest, third)
    assert (second.phase, second.order, second.at) == (AuditPhase.DONE, 1, desk.now)
    assert desk.run(desk.store.audit_log.after(0, limit=10)) == [first, second, third]
    assert desk.run(desk.store.audit_log.after(1, limit=1)) == [second]
    assert desk.run(desk.store.audit_log.head()) == (3, third.digest)


def test_nothing_appended_is_nothing_changed(desk):
    assert append(desk) == []
    assert desk.run(desk.store.audit_log.head()) == (0, START)


def test_orders_are_found_newest_first_and_their_ends_by_them(desk):
    first, second, third = append(desk, ORDER, entry(actor="bob"), entry(action="jobs.retry", object="7"))
    [end] = append(desk, entry(phase=AuditPhase.FAILED, order=first.id))
    [refused] = append(desk, entry(phase=AuditPhase.REFUSED, actor="eve"))

    def found(**which: Any) -> list[AuditEntry]:
        return desk.run(desk.store.audit_log.find(AuditFilter(**which)))

    assert found() == [refused, third, second, first]
    assert found(limit=1, before=refused.id) == [third]
    assert found(actor="bob") == [second]
    assert found(actor="ada", action="jobs.retry") == [third]
    assert found(action="jobs.cancel") == [refused, second, first]
    assert found(object="42", actor="ada", action="jobs.cancel") == [first]
    assert found(object="42", limit=1, before=refused.id) == [second]
    assert desk.run(desk.store.audit_log.ends([first.id, second.id])) == {first.id: end}


def test_an_order_ends_once(desk):
    [first] = append(desk, ORDER)
    append(desk, entry(phase=AuditPhase.DONE, order=first.id))

    with pytest.raises(StoreError, match=r"(?i)unique|duplicate"):
        append(desk, entry(phase=AuditPhase.FAILED, order=first.id))

    assert desk.run(desk.store.audit_log.head())[0] == 2


def test_one_that_cannot_be_appended_costs_the_others_nothing(desk):
    [first] = append(desk, ORDER)
    end = entry(phase=AuditPhase.DONE, order=first.id)

    async def work() -> list[Any]:
        appends = (
            desk.store.audit_log.append([each], at=desk.now) for each in (ORDER, end, end, ORDER, ORDER)
        )
        return await asyncio.gather(*appends, return_exceptions=True)

    done = desk.run(work())

    assert [isinstance(each, StoreError) for each in done] == [False, False, True, False, False]
    told = desk.run(audit_log(desk.store, desk.clock).averify())
    assert (told.sound, told.entries) == (True, 5)


def test_who_is_cancelled_while_waiting_leaves_the_others_theirs(desk):
    async def work() -> list[Any]:
        tasks = [asyncio.ensure_future(desk.store.audit_log.append([ORDER], at=desk.now)) for _ in range(6)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[3].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    done = desk.run(work())

    others = [each for number, each in enumerate(done) if number not in (0, 3)]
    assert all(isinstance(each, list) for each in others), done
    assert desk.run(audit_log(desk.store, desk.clock).averify()).sound


async def sabotage(url: str, *statements: str, unguarded: bool = True) -> None:
    """Run statements behind the store's back, as somebody with the database's password would."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        with connection:
            if unguarded:
                for trigger in (
                    "audit_log_stand",
                    "audit_log_stay",
                    "audit_log_once",
                    "audit_log_head_rises",
                ):
                    connection.execute(f"DROP TRIGGER {trigger}")
            for statement in statements:
                connection.execute(statement)
        connection.close()
        return
    server = await asyncpg.connect(url, server_settings={"search_path": "mainspring"})
    try:
        if unguarded:
            await server.execute(
                "ALTER TABLE audit_log DISABLE TRIGGER ALL; ALTER TABLE audit_log_head DISABLE TRIGGER ALL"
            )
        for statement in statements:
            await server.execute(statement)
    finally:
        await server.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET actor = 'nobody' WHERE id = 2",
        "DELETE FROM audit_log WHERE id = 2",
        "UPDATE audit_log_head SET id = 1",
        "DELETE FROM audit_log_head",
    ],
)
def test_the_database_refuses_to_change_what_is_on_record(database_url, run, clock, statement):
    async def work() -> None:
        store = open_store(database_url, clock=clock)
        try:
            await store.audit_log.append([ORDER] * 3, at=clock.stamp())
            with pytest.raises((sqlite3.Error, asyncpg.PostgresError), match="append-only"):
                await sabotage(database_url, statement, unguarded=False)
            assert (await audit_log(store, clock).averify()).sound
        finally:
            await store.close()

    run(work())


@pytest.mark.parametrize(
    ("statements", "first_bad"),
    [
        (["UPDATE audit_log SET actor = 'nobody' WHERE id = 3"], 3),
        (["UPDATE audit_log SET at = (SELECT at FROM audit_log WHERE id = 5) WHERE id = 2"], 2),
        (["UPDATE audit_log SET order_id = 1 WHERE id = 4"], 4),
        (["DELETE FROM audit_log WHERE id = 4"], 4),
        (["DELETE FROM audit_log WHERE id = 1"], 1),
        (["DELETE FROM audit_log WHERE id = 6"], 6),
        (["UPDATE audit_log SET id = 99 WHERE id = 6"], 6),
        (
            [
                "UPDATE audit_log SET id = 99 WHERE id = 2",
                "UPDATE audit_log SET id = 2 WHERE id = 3",
                "UPDATE audit_log SET id = 3 WHERE id = 99",
            ],
            2,
        ),
    ],
    ids=["changed", "dated", "tied", "deleted", "first", "last", "renumbered", "reordered"],
)
def test_whoever_changes_the_log_is_found_out(database_url, run, statements, first_bad):
    clock = ManualClock()

    async def work() -> None:
        store = open_store(database_url, clock=clock)
        try:
            for number in range(6):
                await store.audit_log.append([entry(object=str(number))], at=clock.stamp())
                clock.advance(SECOND)
            acts = audit_log(store, clock)
            whole = await acts.averify(page=2)
            assert (whole.sound, whole.entries) == (True, 6)
            await sabotage(database_url, *statements)

            told = await acts.averify(page=2)

            assert (told.sound, told.bad_id) == (False, first_bad)
        finally:
            await store.close()

    run(work())


def test_a_chain_that_was_written_anew_is_found_out_by_who_knows_an_old_digest(desk):
    append(desk, ORDER, ORDER)
    known = desk.run(desk.store.audit_log.head())
    append(desk, ORDER)

    acts = audit_log(desk.store, desk.clock)

    assert desk.run(acts.averify(known=known)).sound
    told = desk.run(acts.averify(known=(2, b"\1" * 32)))
    assert (told.sound, told.bad_id) == (False, 2)
    assert desk.run(acts.averify(known=(9, b"\1" * 32))).bad_id == 4


def test_many_appenders_make_one_chain(database_url, run, clock):
    async def work() -> None:
        stores = [open_store(database_url, clock=clock) for _ in range(4)]
        try:
            entries = await asyncio.gather(
                *(
                    store.audit_log.append([entry(actor=f"{number}", object=f"{turn}")], at=None)
                    for number, store in enumerate(stores)
                    for turn in range(25)
                )
            )
            told = await audit_log(stores[0], clock).averify(page=7)
        finally:
            for store in stores:
                await store.close()
        assert sorted(each.id for [each] in entries) == list(range(1, 101))
        assert (told.sound, told.entries) == (True, 100)

    run(work())


def test_an_entry_is_on_the_disk_when_it_is_answered(backend, desk):
    """Whatever else may be lost in a crash: not this."""
    desk.run(
        desk.store.processes.beat(1, lease=SECOND, claims=[], at=desk.now)
    )  # relaxed, as the next call must not be
    append(desk, ORDER)
    if backend == "sqlite":
        assert desk.store._database._writer._durable is True
        return
    watch = """
        CREATE TABLE mainspring.watched (setting text);
        CREATE FUNCTION mainspring.watch() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO mainspring.watched VALUES (current_setting('synchronous_commit'));
            RETURN NULL;
        END $$;
        CREATE TRIGGER watch AFTER INSERT ON mainspring.audit_log
            FOR EACH ROW EXECUTE FUNCTION mainspring.watch();
    """

    async def work() -> list[str]:
        url = desk.store._database._url
        name = url.rpartition("/")[2]
        await sabotage(url, watch, f"ALTER DATABASE {name} SET synchronous_commit = off", unguarded=False)
        store = open_store(url, clock=desk.clock)
        await store.audit_log.append([ORDER], at=None)
        rows = await asyncpg.connect(url)
        try:
            return [row["setting"] for row in await rows.fetch("SELECT setting FROM mainspring.watched")]
        finally:
            await rows.close()
            await store.close()

    assert desk.run(work()) == ["on"]
