# ruff: noqa: E501 - long lines of SQL
"""Fills a PostgreSQL with a fleet's month, straight into the tables: what made it is not measured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
import msgspec

from mainspring.clock import SystemClock
from mainspring.model.schedule import Misfire, Overlap, Schedule
from mainspring.model.workflow import Definition, Node
from mainspring.store.opener import open_store
from mainspring.triggers.cron import Cron

TASKS, QUEUES, SPECS, PROCESSES, DAYS = 40, 12, 2_000, 20, 30
RARE_TASK = "rare.report"


@dataclass(frozen=True)
class Size:
    """How much there is of everything."""

    live: int = 1_000_000
    runs: int = 10_000_000
    schedules: int = 100_000
    dead: int = 50_000
    groups: int = 200
    workflows: int = 20_000

    def scaled(self, by: float) -> Size:
        return Size(
            live=int(self.live * by),
            runs=int(self.runs * by),
            schedules=int(self.schedules * by),
            dead=int(self.dead * by),
            groups=self.groups,
            workflows=int(self.workflows * by),
        )


async def fill(url: str, size: Size) -> float:
    """Migrate and fill an empty database; answers the seconds it took."""
    store = open_store(url, clock=SystemClock())
    await store.migrate()
    await store.close()
    began = time.monotonic()
    connection = await asyncpg.connect(url, server_settings={"timezone": "UTC", "jit": "off"})
    try:
        await connection.copy_records_to_table(
            "specs", schema_name="mainspring", columns=["trigger", "next_at", "planned"], records=_specs()
        )
        for statement in _statements(size):
            await connection.execute(statement, timeout=1800)
        await connection.execute("VACUUM (ANALYZE)", timeout=1800)
        await connection.execute("CHECKPOINT", timeout=600)
    finally:
        await connection.close()
    return time.monotonic() - began


def _specs() -> Iterator[tuple[str, datetime | None, bool]]:
    now = datetime.now(UTC)
    zones = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo")
    for n in range(SPECS):
        minute, hour = n % 60, n // 60 % 24
        hours = f"{hour}-23" if n % 10 == 0 else str(hour)
        days = "1-5" if n % 7 == 0 else "*"
        cron = Cron(f"{minute} {hours} * * {days}", zones[n // 1440 * 2 + n % 2])
        yield cron.encode(), cron.next_after(now), False


def _statements(size: Size) -> Iterator[str]:
    """In the order they depend on one another. Few tasks have most of the jobs, as is usual."""
    task, queue = f"1 + floor({TASKS} * random() ^ 3)::int", f"1 + floor({QUEUES} * random() ^ 2)::int"
    payload = """convert_to('{"args":[],"kwargs":{"customer":' || n || ',"mode":"full"}}', 'UTF8')"""
    yield f"""
        INSERT INTO mainspring.tasks (name) SELECT 'work.task' || n FROM generate_series(1, {TASKS}) n;
        INSERT INTO mainspring.tasks (name) VALUES ('{RARE_TASK}');
        INSERT INTO mainspring.queues (name) SELECT 'queue' || n FROM generate_series(1, {QUEUES}) n;
        INSERT INTO mainspring.priority_levels (queue_id, priority)
        SELECT q, p FROM generate_series(1, {QUEUES}) q, generate_series(0, 2) p WHERE p = 0 OR q <= 4;
        INSERT INTO mainspring.processes (id, role, name, queues, tasks, version, tzdata, started_at, lease_until)
        SELECT n, CASE WHEN n > 18 THEN 'scheduler' ELSE 'worker' END, 'host' || n || ':100',
               ARRAY(SELECT name FROM mainspring.queues), ARRAY(SELECT name FROM mainspring.tasks), '0', '2025b',
               now() - interval '1 day', now() + interval '1 day'
        FROM generate_series(1, {PROCESSES}) n;
    """
    yield from _history(size, task, queue, payload)
    yield from _live(size, task, queue, payload)
    yield from _schedules(size, task, queue)
    yield from _dead(size, payload)
    yield from _workflows(size)
    yield _stats()


def _history(size: Size, task: str, queue: str, payload: str) -> Iterator[str]:
    for table, key in (("runs", "finished_at"), ("run_logs", "finished_at"), ("slots", "slot_at")):
        yield f"SELECT mainspring.add_partitions('{table}', '{key}', current_date - {DAYS}, {DAYS + 8})"
    chunk = max(size.runs // 20, 1)
    for first in range(1, size.runs + 1, chunk):
        last = min(first + chunk - 1, size.runs)
        # One in thirty is a failure that was tried again, one in two hundred was cancelled or discarded.
        yield f"""
            INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id,
                slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, verdict, payload, error)
            SELECT n, ended, ended - random() * interval '3 seconds', ended - interval '20 seconds',
                   ended - interval '10 seconds', 1 + n % {PROCESSES}, CASE WHEN n % 4 = 0 THEN 1 + n / 4 % {size.schedules} END,
                   NULL, {queue}, {task}, 1, 0, 3, 0, 0,
                   CASE WHEN n % 30 = 0 THEN 1 WHEN n % 400 = 1 THEN 5 WHEN n % 400 = 2 THEN 7 ELSE 0 END,
                   CASE WHEN n % 30 <> 0 THEN {payload} END,
                   CASE WHEN n % 30 = 0 THEN '{{"type":"ValueError","message":"no such customer"}}'::jsonb END
            FROM (SELECT n, now() - interval '{DAYS} days' * ({size.runs} - n)::float8 / {size.runs} AS ended
                  FROM generate_series({first}, {last}) n) made;
        """
    yield f"""
        INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, queue_id, task_id, fence,
            priority, max_attempts, failures, crashes, verdict, payload)
        SELECT n * {max(size.runs // 20, 1)} + 3, now() - interval '{DAYS} days' * (20 - n)::float8 / 20, now(), now(), now(), 1, 1,
               {TASKS + 1}, 1, 0, 1, 0, 0, 0, '{{}}'::bytea
        FROM generate_series(1, 19) n;
        SELECT setval('mainspring.job_ids', {size.runs + size.live + size.dead + 10 * size.workflows + 1_000_000});
    """


def _live(size: Size, task: str, queue: str, payload: str) -> Iterator[str]:
    start = size.runs + 1
    # Sixty in a hundred are due, the oldest of them run; of the rest most wait for their time.
    yield f"""
        INSERT INTO mainspring.jobs (id, run_at, enqueued_at, queue_id, task_id, priority, max_attempts, payload)
        SELECT {start} + n, CASE WHEN n % 10 < 6 THEN at ELSE now() + interval '3 days' * random() END, at,
               queue, {task}, CASE WHEN queue <= 4 THEN n % 3 ELSE 0 END, 3, {payload}
        FROM (SELECT n, {queue} AS queue, now() - interval '6 hours' * ({size.live} - n)::float8 / {size.live} AS at
              FROM generate_series(1, {size.live}) n) made;
        UPDATE mainspring.jobs SET worker_id = 1 + id % 18, fence = 1, claimed_at = now() - interval '5 seconds'
        WHERE id = ANY (ARRAY(SELECT id FROM mainspring.jobs WHERE run_at <= now() ORDER BY run_at LIMIT 900));
        UPDATE mainspring.processes m SET holding = ARRAY(SELECT j.id FROM mainspring.jobs j WHERE j.worker_id = m.id);
        INSERT INTO mainspring.unique_keys (key, name, job_id)
        SELECT sha256(n::text::bytea), 'customer-' || n, {start} + n FROM generate_series(1, {size.live // 50}) n;
        INSERT INTO mainspring.limit_keys (name, key, concurrency, burst)
        SELECT 'api', 'tenant' || n, 5, 1 FROM generate_series(1, 500) n;
        INSERT INTO mainspring.limit_sets (limit_keys) SELECT n::text FROM generate_series(1, 500) n;
        UPDATE mainspring.jobs SET limit_set_id = 1 + id % 500, due_at = run_at, run_at = timestamptz '9998-01-01 00:00:00+00'
        WHERE id BETWEEN {start} + 1000 AND {start} + {min(20_000, size.live // 10)} AND worker_id = 0;
        INSERT INTO mainspring.limit_holders (limit_key_id, job_id)
        SELECT 1 + id % 500, id FROM mainspring.jobs WHERE worker_id <> 0 ON CONFLICT DO NOTHING;
    """


def _schedules(size: Size, task: str, queue: str) -> Iterator[str]:
    yield f"""
        INSERT INTO mainspring.schedules (name, spec_id, task_id, queue_id, priority, max_attempts, payload, misfire, catch_up,
            active_from, offset_by, edited, paused_at, paused_by)
        SELECT 'customer.' || lpad(n::text, 6, '0') || '.report', 1 + n % {SPECS}, {task}, {queue}, 0, 3,
               convert_to('{{"args":[' || n || '],"kwargs":{{}}}}', 'UTF8'), 'latest', interval '1 day', now() - interval '60 days',
               CASE WHEN n % 2 = 0 THEN interval '1 second' * (n % 3600) ELSE interval '0' END, n % 400 = 0,
               CASE WHEN n % 200 = 0 THEN now() - interval '1 day' END, CASE WHEN n % 200 = 0 THEN 'ann' END
        FROM generate_series(1, {size.schedules}) n;
        INSERT INTO mainspring.schedule_versions (schedule_id, version, name, change, changed_at, author, definition)
        SELECT id, 1, name, 'created', now() - interval '60 days', 'code', '{_definition()}' FROM mainspring.schedules;
    """
    # A week of every schedule, a fortnight of every hour for some.
    yield f"""
        INSERT INTO mainspring.slots (schedule_id, slot_at, decided_at, job_id, disposition, reason)
        SELECT s, date_trunc('day', now()) - d * interval '1 day' + s % 1440 * interval '1 minute',
               date_trunc('day', now()) - d * interval '1 day' + s % 1440 * interval '1 minute' + interval '1 second',
               CASE WHEN s % 50 <> 0 THEN s * 7 + d END, (s % 50 = 0)::int, CASE WHEN s % 50 = 0 THEN 'overlap' END
        FROM generate_series(1, {size.schedules}) s, generate_series(1, 7) d;
        INSERT INTO mainspring.slots (schedule_id, slot_at, decided_at, job_id, disposition)
        SELECT s, date_trunc('hour', now()) - h * interval '1 hour' + interval '7 seconds', now(), s * 7 + h, 0
        FROM generate_series(10, {max(size.schedules, 10)}, 50) s, generate_series(1, 336) h;
    """


def _dead(size: Size, payload: str) -> Iterator[str]:
    start = size.runs + size.live + 10
    yield f"""
        INSERT INTO mainspring.dead_jobs (id, run_at, enqueued_at, died_at, queue_id, task_id, fence, priority, max_attempts,
            failures, crashes, reason, payload, errors)
        SELECT {start} + n, died, died, died, 1 + n % {QUEUES}, 1 + n % {size.groups} % {TASKS}, 3, 0, 3, 3, 0, 'failed', {payload},
               jsonb_build_array(error, error, error)
        FROM (SELECT n, now() - interval '20 days' * n::float8 / {size.dead} AS died,
                     jsonb_build_object('type', 'app.errors.Error' || n % {size.groups}, 'attempt', 3, 'at', now(),
                         'message', 'the thing ' || n % {size.groups} || ' failed' || chr(10) || 'for customer ' || n,
                         'traceback', repeat('  File "app.py", line ' || n % 300 || ', in work' || chr(10), 20)) AS error
              FROM generate_series(1, {size.dead}) n) made;
    """


def _workflows(size: Size) -> Iterator[str]:
    start = size.runs + size.live + size.dead + 1000
    chain = Definition(
        name="flow",
        nodes=tuple(
            Node(name=f"step{n}", task="work.task1", parents=(n - 1,) if n else ()) for n in range(5)
        ),
    )
    text = msgspec.json.encode(chain).decode()
    yield f"""
        INSERT INTO mainspring.definitions (name, version, digest, definition, created_at)
        SELECT 'flow' || n, 1, sha256(n::text::bytea), '{text}', now() FROM generate_series(1, 20) n;
        INSERT INTO mainspring.workflows (id, started_at, ended_at, definition_id, nodes_left, state, name, params, step_ids)
        SELECT {start} + n * 10, now() - interval '10 days' * ({size.workflows} - n)::float8 / {size.workflows},
               CASE WHEN n % 10 <> 0 THEN now() END, 1 + n % 20, CASE WHEN n % 10 = 0 THEN 3 ELSE 0 END,
               CASE WHEN n % 10 = 0 THEN 0 WHEN n % 100 = 1 THEN 2 ELSE 1 END, 'flow' || (1 + n % 20), '{{}}'::bytea,
               ARRAY(SELECT {start} + n * 10 + i FROM generate_series(1, 5) i)
        FROM generate_series(1, {size.workflows}) n;
        INSERT INTO mainspring.workflow_steps (id, workflow_id, place, waits, state, ended_at)
        SELECT {start} + n * 10 + i, {start} + n * 10, i - 1, 0, CASE WHEN n % 10 <> 0 OR i < 3 THEN 2 ELSE 0 END, now()
        FROM generate_series(1, {size.workflows}) n, generate_series(1, 5) i;
    """


def _definition() -> str:
    """A schedule as a version keeps it."""
    schedule = Schedule(
        id=1,
        name="customer.report",
        task="work.task1",
        trigger="{}",
        payload=b"{}",
        queue="queue1",
        priority=0,
        max_attempts=3,
        misfire=Misfire.LATEST,
        catch_up=timedelta(days=1),
        overlap=Overlap.SKIP,
        overlap_limit=1,
        offset=timedelta(),
        jitter=timedelta(),
        max_fires=None,
        fires_left=None,
        skips=0,
        version=1,
        active_from=datetime.now(UTC),
        edited=False,
        paused_at=None,
        paused_by=None,
        pause_note=None,
        next_at=None,
    )
    return msgspec.json.encode(schedule).decode()


def _stats() -> str:
    """Every task in two queues: a day by minutes, a fortnight by ten, a season by hours, a year by days."""
    rows = []
    for span, days in ((1, 1), (10, 14), (60, 90), (1440, 365)):
        rows.append(f"""
            INSERT INTO mainspring.stats (span, at, task, queue, counts, waits, tooks)
            SELECT {span}, date_bin(interval '{span} minutes', now(), timestamptz '2000-01-01 00:00:00+00') - n * interval '{span} minutes', 'work.task' || t, 'queue' || q,
                   array_fill(n % 90, ARRAY[16]),
                   array_fill(n % 90, ARRAY[26]),
                   array_fill(n % 90, ARRAY[26])
            FROM generate_series(0, {days * 1440 // span}) n, generate_series(1, {TASKS}) t, generate_series(1, 2) q;
            INSERT INTO mainspring.stats (span, at, task, queue, counts, waits, tooks, mark)
            SELECT {span}, date_bin(interval '{span} minutes', now(), timestamptz '2000-01-01 00:00:00+00') - n * interval '{span} minutes', t, t,
                   array_fill(n % 900, ARRAY[16]), array_fill(n % 900, ARRAY[26]), array_fill(n % 900, ARRAY[26]), CASE t WHEN '' THEN 10000000 - n END
            FROM generate_series(0, {days * 1440 // span}) n, unnest(ARRAY['', '*']) t;
        """)
    return "\n".join(rows)
