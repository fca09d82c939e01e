"""Worker processes from one to many, with sessions of their own and through PgBouncer."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench import Bench
from benchmarks.growth.curve import Curve
from benchmarks.growth.fill import backlog, run
from benchmarks.growth.processes import resident_mb, seconds, server_seconds, started

UNITS = {
    "rate": "jobs/s",
    "cpu": "µs of all cores per job",
    "workers' cpu": "µs per job",
    "server's cpu": "µs per job",
    "sessions": "of the server",
    "per worker": "sessions",
    "resident": "MB per worker",
}
_SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def against_workers(
    bench: Bench,
    counts: Sequence[int],
    jobs: int,
    concurrency: int,
    servers: Sequence[int],
    *,
    url: str,
    how: str,
) -> Curve:
    """Drains of `jobs` jobs, which are there when the workers are: they wait behind a queue that is paused,
    and the clock runs from the moment it no longer is. PgBouncer is counted with the server."""
    curve = Curve(f"Workers, {how}", "workers", UNITS, "cpu")
    for count in counts:
        await run(bench, "TRUNCATE mainspring.runs", "TRUNCATE mainspring.processes CASCADE")
        await backlog(bench, jobs)
        await run(bench, "UPDATE mainspring.priority_levels SET paused = true")
        options = ("--concurrency", str(concurrency))
        async with started(bench, "worker", count, *options, url=url) as workers:
            pids = [worker.pid for worker in workers]
            own, server = sum(map(seconds, pids)), await server_seconds(bench, servers)
            [(began,)] = await bench.rows("SELECT clock_timestamp()")
            await run(bench, "UPDATE mainspring.priority_levels SET paused = false")
            await bench.until_done(jobs)
            own = sum(map(seconds, pids)) - own
            server = await server_seconds(bench, servers) - server
            [(sessions,)] = await bench.rows(_SESSIONS)
            took = (await bench.last_end() - began).total_seconds()
            memory = [each for pid in pids if (each := resident_mb(pid)) is not None]
        curve.points.append(
            {
                "workers": count,
                "rate": jobs / took,
                "cpu": (own + server) * 1e6 / jobs,
                "workers' cpu": own * 1e6 / jobs,
                "server's cpu": server * 1e6 / jobs,
                "sessions": float(sessions),
                "per worker": sessions / count,
                "resident": sum(memory) / len(memory) if memory else None,
            }
        )
    await run(bench, "TRUNCATE mainspring.runs", "TRUNCATE mainspring.jobs")
    return curve
