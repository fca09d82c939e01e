"""Rows straight into the tables: what made them is not measured."""

from __future__ import annotations

import asyncpg

from benchmarks.bench import Bench

PRIORITIES = 4
TASK, QUEUE = "noop", "default"
PAYLOAD = """convert_to('{"kwargs":{"tenant":"acme","month":"2026-10"}}', 'UTF8')"""
CHUNK = 1_000_000
_WITHIN = 3600.0


async def admin(bench: Bench) -> asyncpg.Connection[asyncpg.Record]:
    """A session for what is not measured."""
    return await asyncpg.connect(bench.url, server_settings={"timezone": "UTC", "jit": "off"})


async def name_all(bench: Bench) -> None:
    """The names and priority levels that rows refer to."""
    await run(
        bench,
        f"INSERT INTO mainspring.queues (name) VALUES ('{QUEUE}') ON CONFLICT DO NOTHING",
        f"INSERT INTO mainspring.tasks (name) VALUES ('{TASK}') ON CONFLICT DO NOTHING",
        f"""INSERT INTO mainspring.priority_levels (queue_id, priority)
            SELECT id, p FROM mainspring.queues, generate_series(0, {PRIORITIES - 1}) p WHERE name = '{QUEUE}'
            ON CONFLICT DO NOTHING""",
    )


async def backlog(bench: Bench, count: int) -> None:
    """So many jobs that are due, in turn of each priority."""
    await name_all(bench)
    await run(bench, "TRUNCATE mainspring.jobs")
    for first in range(1, count + 1, CHUNK):
        await run(
            bench,
            f"""INSERT INTO mainspring.jobs
                    (id, run_at, enqueued_at, queue_id, task_id, priority, max_attempts, payload)
                SELECT nextval('mainspring.job_ids'), now() - interval '1 day' + n * interval '1 ms', now(),
                       q.id, t.id, n % {PRIORITIES}, 3, {PAYLOAD}
                FROM generate_series({first}, {min(first + CHUNK - 1, count)}) n,
                     mainspring.queues q, mainspring.tasks t
                WHERE q.name = '{QUEUE}' AND t.name = '{TASK}'""",
        )
    await run(bench, "VACUUM ANALYZE mainspring.jobs", "CHECKPOINT")


async def history(bench: Bench, count: int) -> None:
    """So many runs that succeeded, over the days for which there are partitions until now."""
    await name_all(bench)
    await run(bench, "TRUNCATE mainspring.runs")
    for first in range(1, count + 1, CHUNK):
        await run(
            bench,
            f"""INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id,
                    queue_id, task_id, fence, priority, max_attempts, failures, crashes, verdict, payload)
                SELECT -n, now() - random() * interval '12 hours', now(), now(), now(), 1, q.id, t.id,
                       1, 0, 3, 0, 0, 0, {PAYLOAD}
                FROM generate_series({first}, {min(first + CHUNK - 1, count)}) n,
                     mainspring.queues q, mainspring.tasks t
                WHERE q.name = '{QUEUE}' AND t.name = '{TASK}'""",
        )
    await run(bench, "VACUUM ANALYZE mainspring.runs", "CHECKPOINT")


async def run(bench: Bench, *statements: str) -> None:
    """One after the other, each with all the time it takes."""
    connection = await admin(bench)
    try:
        for statement in statements:
            await connection.execute(statement, timeout=_WITHIN)
    finally:
        await connection.close()
