"""What a database tells of itself, in sentences."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from mainspring.admin.health.doctor import HealthView, findings
from mainspring.admin.health.finding import Level
from mainspring.admin.views import to_json
from mainspring.model.health import Partitions, Snapshot, StoreHealth, TableHealth

NOW = datetime(2030, 1, 1, tzinfo=UTC)
GIB = 2**30


def table(**fields):
    given = {
        "name": "jobs",
        "rows": 1000,
        "dead_rows": 0,
        "bytes": 1,
        "index_bytes": 1,
        "updates": 0,
        "hot": None,
        "vacuumed_at": NOW - timedelta(hours=3),
        "analyzed_at": None,
    }
    return TableHealth(**{**given, **fields})


def warnings(**fields):
    checks = findings(StoreHealth(engine="postgresql", **fields), NOW)
    return [each.sentence for each in checks if each.level is Level.WARN]


def test_what_is_wrong_is_said(desk):
    days = {"table": "runs", "count": 3, "first": date(2030, 1, 1), "last": date(2030, 1, 1)}
    assert warnings(tables=(table(dead_rows=90_000),))[0].startswith(
        "jobs: 90,000 dead rows beside 1,000 live ones, last vacuumed 3 h 0 min ago"
    )
    assert warnings(tables=(table(updates=20_000, hot=0.1),)) == [
        "jobs: only 10% of updates leave the indices alone (HOT)"
    ]
    assert "0 days ahead" in warnings(partitions=(Partitions(**days, ahead=0, strays=0),))[0]
    assert "default partition" in warnings(partitions=(Partitions(**days, ahead=7, strays=3),))[0]
    assert "session 7" in warnings(snapshots=(Snapshot(what="session 7", age=timedelta(hours=1)),))[0]
    assert "2,048 MiB" in warnings(snapshots=(Snapshot(what="slot", age=None, bytes=2 * GIB),))[0]
    assert warnings(sessions=90, most_sessions=100) == ["90 of 100 sessions are in use"]
    assert "5 min" in warnings(sessions=1, most_sessions=100, longest=timedelta(minutes=5))[0]
    assert warnings(withheld=("x: no rights",)) == ["could not be found out: x: no rights"]


def test_a_file_is_judged_by_its_size_and_its_log():
    def said(**fields):
        checks = findings(StoreHealth(engine="sqlite", journal="wal", **fields), NOW)
        return [(each.level, each.sentence) for each in checks]

    assert said(bytes=2**20) == [(Level.OK, "1.0 MiB")]
    assert said(bytes=GIB, log_bytes=GIB)[0][0] is Level.WARN
    assert said(bytes=GIB, free_bytes=GIB // 4 * 3) == [
        (Level.WARN, "768 of 1,024 MiB are not in use; see VACUUM")
    ]


def test_every_store_tells_how_it_is(desk):
    for _ in range(3):
        desk.put()

    health = desk.run(desk.store.health.look())
    checks = findings(health, desk.now)
    view = to_json(HealthView.of(health, checks))

    assert view["engine"] in ("sqlite", "postgresql")
    assert health.bytes > 0
    assert health.withheld == ()
    if health.engine == "postgresql":
        assert {"jobs", "runs", "slots", "stats"} <= {each.name for each in health.tables}
        assert {each.table: each.ahead for each in health.partitions} == {
            "runs": 7,
            "run_logs": 7,
            "slots": 7,
        }
        assert health.sessions > 0
        assert health.log_bytes > 0
    else:
        assert health.journal in ("wal", "memory")


def test_an_open_transaction_is_named(desk, run):
    if desk.run(desk.store.health.look()).engine != "postgresql":
        return

    async def beside():
        loan = await desk.store.effects.lend()
        try:
            await loan.connection.execute("SELECT txid_current()")
            return await desk.store.health.look()
        finally:
            await loan.rollback()

    health = run(beside())
    assert any("mainspring handler" in each.what and each.age is not None for each in health.snapshots)
