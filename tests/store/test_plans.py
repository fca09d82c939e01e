"""What a claim, a reap and a look at due specs cost must not grow with what waits: they keep to
their index at 100,000 rows, on both dialects, and read a handful of pages."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from mainspring.store.opener import open_store
from mainspring.store.postgres import connection as postgres
from mainspring.store.postgres import pooled
from mainspring.store.sqlite import connection as sqlite
from mainspring.testing.clock import ManualClock

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ROWS = 100_000
DUE = 1_000
FEW_PAGES = 1_500
"""A seventh of what 100,000 jobs take up; a claim of ten touches some dozens."""

pytestmark = pytest.mark.xdist_group("plans")

# One priority level in ten is due in part, the rest waits. Worker 1 is alive, worker 2 dead, both hold jobs
_LOAD_POSTGRES = f"""
INSERT INTO mainspring.queues (name) SELECT 'q' || n FROM generate_series(0, 9) n;
INSERT INTO mainspring.tasks (name) SELECT 't' || n FROM generate_series(0, 9) n;
INSERT INTO mainspring.priority_levels (queue_id, priority)
    SELECT q.id, p FROM mainspring.queues q, generate_series(0, 2) p;
INSERT INTO mainspring.jobs
    (id, run_at, enqueued_at, queue_id, task_id, priority, max_attempts, payload, worker_id)
SELECT n, CASE WHEN n <= {DUE} THEN timestamptz '2030-01-01 00:00Z' - n * interval '1 second'
               ELSE timestamptz '2030-01-01 00:00Z' + n * interval '1 second' END,
       '2029-12-31 00:00Z', 1 + n % 10, 1 + n % 10,
       n % 3, 1, repeat('x', 100)::bytea,
       CASE WHEN n <= {DUE} AND n % 20 = 0 THEN 1 + n % 40 / 20 ELSE 0 END
FROM generate_series(1, {ROWS}) n;
INSERT INTO mainspring.processes
       (id, role, name, queues, tasks, version, tzdata, started_at, lease_until, dead)
SELECT n, 'worker', 'w', '{{}}', '{{}}', '', '', '2029-12-31 00:00Z', '2030-01-01 00:01Z', n = 2
FROM generate_series(1, 2) n;
INSERT INTO mainspring.specs (trigger, next_at, planned)
SELECT 'spec ' || n, timestamptz '2030-01-01 00:00Z' + (n - 50) * interval '1 second', true
FROM generate_series(1, {ROWS}) n;
ANALYZE;
"""

_LOAD_SQLITE = """
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < :rows)
INSERT INTO jobs (id, run_at, enqueued_at, queue, task, priority, max_attempts, payload, worker_id)
SELECT n, CASE WHEN n <= :due THEN :now - n * 1000000 ELSE :now + n * 1000000 END, :now - 1000000,
       'q' || (n % 10), 't' || (n % 10), n % 3, 1, zeroblob(100),
       CASE WHEN n <= :due AND n % 20 = 0 THEN 1 + n % 40 / 20 ELSE 0 END
FROM n;
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < :rows)
INSERT INTO specs (trigger, next_at, planned) SELECT 'spec ' || n, :now + (n - 50) * 1000000, 1 FROM n;
"""


def literal(value):
    """A value as SQL text: EXECUTE takes no parameters of its own."""
    match value:
        case None:
            return "NULL"
        case int():
            return str(value)
        case str():
            return f"'{value}'"
        case datetime():
            return f"timestamptz '{value.isoformat()}'"
        case timedelta():
            return f"interval '{value.total_seconds()} seconds'"
        case list():
            return f"ARRAY[{', '.join(literal(item) for item in value)}]" if value else "'{}'"
    raise TypeError(f"no literal for {value!r}")


class Plan:
    """A plan that was run, looked at as a whole."""

    def __init__(self, tree):
        self.root = tree["Plan"]

    def nodes(self, node=None):
        node = node or self.root
        yield node
        for child in node.get("Plans", ()):
            yield from self.nodes(child)

    def scans(self, table):
        named = (node for node in self.nodes() if node.get("Relation Name") == table)
        return {node["Node Type"] for node in named} - {"ModifyTable"}

    def indexes(self, table):
        return {
            node["Index Name"]
            for node in self.nodes()
            if node.get("Relation Name") == table and "Index Name" in node
        }

    def conditions(self, index):
        return " ".join(
            node.get("Index Cond", "") for node in self.nodes() if node.get("Index Name") == index
        )

    @property
    def pages(self):
        return self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"]


@pytest.fixture(scope="module")
def loaded_postgres(databases, request):
    """A database with 100,000 jobs and as many specs, shared by this file's tests: each rolls back."""
    owner = getattr(request.config, "workerinput", {}).get("workerid", "main")
    name = databases.create(owner=f"{owner}_plans")
    url = databases.url(name)

    async def load():
        connection = await asyncpg.connect(url)
        await connection.execute(_LOAD_POSTGRES, timeout=60)
        await connection.close()

    asyncio.run(load())
    yield url
    databases.drop(name)


@pytest.fixture
def explain(loaded_postgres, run):
    """Runs a named statement as the store does, under its settings and a generic plan; rolled back."""

    async def explained(name, params):
        connection = await asyncpg.connect(
            loaded_postgres, server_settings={**pooled.TOLD, **pooled.STEERING}
        )
        try:
            sql, names = postgres.SQL[name]
            async with connection.transaction():
                await connection.execute(f"PREPARE statement AS {sql}")
                arguments = ", ".join(literal(params[key]) for key in names)
                arguments = f"({arguments})" if arguments else ""
                text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE statement {arguments}"
                [tree] = json.loads(await connection.fetchval(text))
                await connection.execute("DEALLOCATE statement")
                raise Undo(Plan(tree))
        except Undo as done:
            return done.plan
        finally:
            await connection.close()

    return lambda name, **params: run(explained(name, params))


class Undo(Exception):
    def __init__(self, plan):
        super().__init__()
        self.plan = plan


def claim_params(**given):
    hints = ("hint_queue_ids", "hint_priorities", "hint_run_ats", "hint_ids")
    nothing: dict[str, object] = {name: [] for name in hints}
    nothing |= dict.fromkeys(("floor", "after_run_at", "after_id", "until_run_at", "until_id"))
    nothing["before"] = False
    return {
        "worker_id": 1,
        "queue_ids": list(range(1, 11)),
        "task_ids": list(range(1, 11)),
        "limit": 10,
        "at": NOW,
        **nothing,
        **given,
    }


def test_a_postgres_claim_keeps_to_its_index(explain):
    plan = explain("claim_jobs", **claim_params())

    assert plan.indexes("jobs") == {"jobs_ready"}
    assert plan.scans("jobs") == {"Index Scan", "Tid Scan"}


def test_a_postgres_claim_ends_its_scan_at_now(explain):
    plan = explain("claim_jobs", **claim_params())

    conditions = plan.conditions("jobs_ready")
    assert "queue_id" in conditions
    assert "priority" in conditions
    assert re.search(r"run_at <= ", conditions)


def test_a_postgres_claim_reads_few_pages_however_many_jobs_wait(explain):
    assert explain("claim_jobs", **claim_params()).pages < FEW_PAGES


def test_a_postgres_claim_that_finds_nothing_reads_few_pages(explain):
    assert explain("claim_jobs", **claim_params(at=NOW - timedelta(days=1))).pages < FEW_PAGES


def test_a_postgres_claim_of_a_hint_starts_at_the_hint(explain):
    lanes = [(queue, priority) for queue in range(1, 11) for priority in range(3)]
    plan = explain(
        "claim_jobs",
        **claim_params(
            hint_queue_ids=[queue for queue, _ in lanes],
            hint_priorities=[priority for _, priority in lanes],
            hint_run_ats=[NOW] * len(lanes),
            hint_ids=[ROWS] * len(lanes),
        ),
    )

    assert re.search(r"ROW\(\S*run_at, \S*id\b.*\) > ROW", plan.conditions("jobs_ready"))
    assert plan.pages < FEW_PAGES / 5


def test_looking_for_postgres_suspects_where_there_are_none_reads_next_to_nothing(explain):
    which = {"queue_ids": list(range(1, 11)), "task_ids": list(range(1, 11)), "at": NOW}
    plan = explain("orphans_due", **which)

    assert plan.indexes("jobs") == {"jobs_orphans"}
    # A few for each queue: how many depends on what vacuum has left in the index.
    assert plan.pages < 6 * len(which["queue_ids"])


def test_a_postgres_claim_of_suspects_keeps_to_their_index(explain):
    which = {"queue_ids": list(range(1, 11)), "task_ids": list(range(1, 11)), "at": NOW}
    plan = explain("claim_orphans", **which, worker_id=1, least=0, most=1, limit=4)

    assert plan.indexes("jobs") == {"jobs_orphans"}
    assert plan.scans("jobs") == {"Index Scan", "Tid Scan"}


def test_a_postgres_look_at_a_stretch_keeps_to_it(explain):
    after, until = NOW - timedelta(days=2), NOW - timedelta(days=1)
    stretch = {"before": True, "after_run_at": after, "after_id": 7, "until_run_at": until, "until_id": 9}
    plan = explain("claim_jobs", **claim_params(**stretch))

    conditions = plan.conditions("jobs_ready")
    assert re.search(r"ROW\(\S*run_at, \S*id\b.*\) > ROW", conditions)
    assert re.search(r"ROW\(\S*run_at, \S*id\b.*\) <= ROW", conditions)
    assert plan.pages < FEW_PAGES / 5


def test_a_postgres_reap_keeps_to_its_index_and_reads_few_pages(explain):
    plan = explain("reap_jobs", limit=1000, crashes_allowed=3, error="{}", at=NOW)

    assert "jobs_ready" in plan.indexes("jobs")
    assert "Seq Scan" not in plan.scans("jobs")
    assert re.search(r"run_at <= ", plan.conditions("jobs_ready"))
    assert plan.pages < 2 * FEW_PAGES


def test_forgetting_postgres_members_keeps_to_the_index(explain):
    plan = explain("forget_processes")

    assert plan.indexes("jobs") == {"jobs_ready"}
    assert plan.scans("jobs") <= {"Index Scan", "Index Only Scan"}


def test_looking_for_held_postgres_jobs_keeps_to_the_index(explain):
    plan = explain("held_jobs", worker_id=1, at=NOW)

    assert plan.indexes("jobs") == {"jobs_ready"}
    assert plan.pages < 2 * FEW_PAGES


def test_releasing_held_postgres_jobs_is_planned_for_a_herd_while_the_queue_is_empty(postgres_url, run):
    """A plan is kept: this one is made of what was left when all was done, and used when all are due."""

    async def planned():
        connection = await asyncpg.connect(postgres_url, server_settings=pooled.STEERING)
        await connection.execute(
            """INSERT INTO mainspring.jobs
                   (id, run_at, enqueued_at, queue_id, task_id, priority, max_attempts, payload)
               SELECT n, now(), now(), 1, 1, 0, 1, ''::bytea FROM generate_series(1, 1000) n"""
        )
        for step in ("ANALYZE", "DELETE FROM", "VACUUM ANALYZE"):
            await connection.execute(f"{step} mainspring.jobs")
        sql, _ = postgres.SQL["release_held"]
        await connection.execute(f"PREPARE statement AS {sql}")
        [tree] = json.loads(await connection.fetchval("EXPLAIN (FORMAT JSON) EXECUTE statement (NULL)"))
        await connection.close()
        return Plan(tree)

    plan = run(planned())

    assert plan.indexes("jobs") == {"jobs_held", "jobs_schedule", "jobs_pkey"}
    assert re.search(r"\(schedule_id = ", plan.conditions("jobs_schedule"))
    assert re.search(r"\(id = ANY ", plan.conditions("jobs_pkey"))


def test_looking_for_late_postgres_jobs_keeps_to_their_index(explain):
    plan = explain("expire_jobs", limit=1000, error="{}", at=NOW)

    assert "jobs_expiring" in plan.indexes("jobs")
    assert re.search(r"expires_at <= ", plan.conditions("jobs_expiring"))
    assert plan.indexes("jobs") <= {"jobs_expiring", "jobs_pkey"}
    assert plan.pages < 50


def test_due_postgres_specs_are_found_by_their_index(explain):
    plan = explain("due_specs", limit=100, beside=[], missed_after=timedelta(seconds=10), at=NOW)

    assert (plan.indexes("specs"), plan.scans("specs")) == ({"specs_due"}, {"Index Scan"})
    assert plan.pages < FEW_PAGES / 10


def test_the_next_due_postgres_spec_is_found_by_its_index(explain):
    plan = explain("next_due", beside=[], at=NOW)

    assert plan.indexes("specs") == {"specs_due"}
    assert plan.pages < 50


def test_unplanned_postgres_specs_are_found_by_their_index(explain):
    plan = explain("unplanned_specs", limit=100)

    assert plan.indexes("specs") == {"specs_unplanned"}


def test_a_page_of_postgres_jobs_does_not_walk_over_the_pages_above_it(explain):
    nothing = {"states": None, "task": None, "queue": None, "since": None, "until": None, "at": NOW}
    plan = explain("live_page", before=ROWS // 10, limit=100, look=10_000, **nothing)

    assert "id < " in plan.conditions("jobs_pkey")
    assert plan.pages < 50


def test_a_page_of_postgres_jobs_looks_no_further_than_it_was_told(explain):
    nothing = {"states": None, "queue": None, "since": None, "until": None, "at": NOW}
    plan = explain("live_page", before=2 * ROWS, limit=100, look=1_000, task="nobodys", **nothing)

    assert plan.pages < FEW_PAGES / 5


def test_what_runs_is_found_at_the_heads_of_postgres_lanes(explain):
    plan = explain("running_ids", before=2 * ROWS, limit=100, look=1, queue=None, at=NOW)

    assert plan.indexes("jobs") == {"jobs_ready"}
    assert plan.pages < 2 * FEW_PAGES


def test_the_heads_of_postgres_lanes_are_counted_by_their_index(explain):
    plan = explain("head_depth", most=10, at=NOW)

    assert plan.indexes("jobs") == {"jobs_ready"}
    assert plan.pages < FEW_PAGES


@pytest.mark.parametrize(
    ("statement", "index", "params"),
    [
        ("ended_page", "job_id_idx", {"verdicts": [0], "task": None}),
        ("ended_of_task", "task_id_expr_idx", {"verdicts": [0], "task": "t1"}),
        ("ended_of_schedule", "schedule_id_expr_idx", {"verdicts": [0], "task": None, "schedule_id": 1}),
        ("ended_unusually", "verdict_expr_idx", {"verdict": 5, "task": None}),
    ],
)
def test_pages_of_postgres_history_keep_to_their_index(explain, statement, index, params):
    nothing = {"queue": None, "since": None, "until": None}
    plan = explain(statement, before=2 * ROWS, limit=10, look=100, **nothing, **params)

    used = {
        node["Index Name"]
        for node in plan.nodes()
        if "Index Name" in node and node["Relation Name"] not in ("queues", "tasks")
    }
    assert {name.partition("_")[2].lstrip("0123456789_") for name in used} <= {index, f"default_{index}"}


@pytest.fixture(scope="module")
def loaded_sqlite(tmp_path_factory):
    """A file with the same rows, shared by this file's tests: they only ask for plans."""
    path = tmp_path_factory.mktemp("plans") / "loaded.db"

    async def migrate():
        store = open_store(f"sqlite:///{path}", clock=ManualClock())
        await store.migrate()
        await store.close()

    asyncio.run(migrate())
    connection = sqlite3.connect(path)
    params = {"rows": ROWS, "due": DUE, "now": int(NOW.timestamp() * 1_000_000)}
    for statement in _LOAD_SQLITE.split(";\n"):
        if statement.strip():
            connection.execute(statement, params)
    connection.execute(
        "INSERT INTO priority_levels (queue, priority) SELECT DISTINCT queue, priority FROM jobs"
    )
    connection.commit()
    yield connection
    connection.close()


def sqlite_plan(connection, name):
    """The steps of a named statement's plan, one a line."""
    sql = sqlite.SQL[name]
    params = dict.fromkeys(re.findall(r"(?<!:):([a-z_]+)", sql))
    steps = [
        row for each in sql.split(";\n") for row in connection.execute(f"EXPLAIN QUERY PLAN {each}", params)
    ]
    return "\n".join(row[3] for row in steps)


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
@pytest.mark.parametrize(
    ("name", "step"),
    [
        (
            "claim_jobs",
            r"SEARCH jobs USING (COVERING )?INDEX jobs_ready \(queue=\? AND priority=\? AND run_at<\?\)",
        ),
        ("held_jobs", r"SEARCH jobs USING INDEX jobs_held \(worker_id=\?\)"),
        ("reap_jobs", r"SEARCH jobs USING INDEX jobs_held \(worker_id=\?\)"),
        (
            "claim_orphans",
            r"SEARCH jobs USING (COVERING )?INDEX jobs_orphans "
            r"\(queue=\? AND priority=\? AND crashes>\? AND crashes<\?\)",
        ),
        ("begin_orphan", r"SEARCH jobs USING INTEGER PRIMARY KEY \(rowid=\?\)"),
        ("forget_processes", r"SEARCH jobs USING COVERING INDEX jobs_held \(worker_id=\?\)"),
        ("expire_jobs", r"SEARCH jobs USING INDEX jobs_expiring \(expires_at<\?\)"),
        ("due_specs", r"SEARCH specs USING INDEX specs_due \(next_at<\?\)"),
        ("next_due", r"SEARCH specs USING COVERING INDEX specs_due"),
        ("live_page", r"SEARCH jobs USING INTEGER PRIMARY KEY \(rowid<\?\)"),
        ("dead_jobs", r"SEARCH dead_jobs USING INTEGER PRIMARY KEY \(rowid<\?\)"),
        ("unplanned_specs", r"SCAN specs USING INDEX specs_unplanned"),
    ],
    ids=lambda value: value if re.fullmatch(r"[a-z_]+", str(value)) else "",
)
def test_a_sqlite_statement_keeps_to_its_index(loaded_sqlite, name, step, analysed):
    loaded_sqlite.execute("ANALYZE")
    if not analysed:
        loaded_sqlite.execute("DROP TABLE sqlite_stat1")

    plan = sqlite_plan(loaded_sqlite, name)

    assert re.search(step, plan), plan
    assert not re.search(r"SCAN jobs\b", plan), plan
