"""A job's life as parts of a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mainspring.model.job import Job, JobState
from mainspring.model.run import Run, Verdict
from mainspring.web.pages.jobs import WIDTH, drawn, parts

START = datetime(2030, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def job(state: JobState, **fields: Any) -> Job:
    given = {"run_at": START, "enqueued_at": START, "payload": b"{}", "max_attempts": 3, "priority": 0}
    return Job(id=1, task="t", queue="q", state=state, **{**given, **fields})


def run(attempt: int, verdict: Verdict, start: float | None, end: float) -> Run:
    began = None if start is None else at(start)
    return Run(
        job_id=1,
        task="t",
        queue="q",
        attempt=attempt,
        verdict=verdict,
        worker_id=1,
        fence=attempt,
        started_at=began,
        finished_at=at(end),
    )


def shape(found: list[Any]) -> list[tuple[str, float, float]]:
    return [(e.kind, (e.start - START).total_seconds(), (e.end - START).total_seconds()) for e in found]


def test_waits_runs_and_backoff_follow_each_other() -> None:
    runs = [
        run(1, Verdict.FAILED, 10, 20),
        run(2, Verdict.RELEASED, 50, 55),
        run(3, Verdict.SUCCEEDED, 60, 100),
    ]
    assert shape(parts(job(JobState.SUCCEEDED), runs, at(999), None)) == [
        ("waiting", 0, 10),
        ("failed", 10, 20),
        ("backoff", 20, 50),
        ("released", 50, 55),
        ("waiting", 55, 60),
        ("succeeded", 60, 100),
    ]


def test_what_it_does_now_is_its_last_part() -> None:
    failed = [run(1, Verdict.FAILED, 10, 20)]
    again = job(JobState.READY, run_at=at(80))
    assert shape(parts(again, failed, at(100), None))[2:] == [("backoff", 20, 80), ("waiting", 80, 100)]
    assert shape(parts(job(JobState.DELAYED, run_at=at(500)), [], at(100), None)) == [("delayed", 0, 100)]
    assert shape(parts(job(JobState.RUNNING), failed, at(100), at(90)))[2:] == [
        ("backoff", 20, 90),
        ("running", 90, 100),
    ]


def test_an_edit_is_no_run() -> None:
    assert parts(job(JobState.DEAD), [run(0, Verdict.EDITED, None, 50)], at(60), None) == []


def test_parts_fill_the_line_and_a_short_run_can_be_seen() -> None:
    found = drawn(parts(job(JobState.SUCCEEDED), [run(1, Verdict.SUCCEEDED, 9999, 10_000)], at(10_000), None))
    assert [each.kind for each in found] == ["waiting", "succeeded"]
    assert found[1].x + found[1].width == WIDTH
    assert found[1].width >= 4
