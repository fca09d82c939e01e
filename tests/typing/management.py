"""How programs manage jobs, for the type checker: every `type: ignore` below is a mistake it must catch."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_type

from mainspring.admin.access import Shown
from mainspring.admin.admin import Admin
from mainspring.admin.audit_log import RecordedOrder
from mainspring.admin.backfills import BackfillPlan
from mainspring.admin.dead_letters import Replayed, changed
from mainspring.admin.jobs import Done, EnqueueRequest, JobHistory
from mainspring.admin.queues import QueueInfo
from mainspring.admin.schedules.draft import Written
from mainspring.admin.schedules.orders import ScheduleDone
from mainspring.admin.workflows.orders import WorkflowDone
from mainspring.app import Mainspring
from mainspring.model.dead_letter import DeadFilter, DeadJob
from mainspring.model.schedule import Backfill, Schedule
from mainspring.tasks.enqueue import JobHandle


def blocking(app: Mainspring, plan: BackfillPlan) -> None:
    assert_type(app.admin("ada"), Admin)
    assert_type(app.jobs.get(42), JobHistory)
    assert_type(app.jobs.cancel(42), list[Done])
    assert_type(app.jobs.cancel([41, 42]), list[Done])
    assert_type(app.jobs.enqueue([EnqueueRequest(task="t")]), tuple[list[JobHandle[Any]], bool])
    assert_type(app.dead_letters.edit(42, changed(args=[1])), tuple[DeadJob, bool])
    assert_type(app.dead_letters.replay_all(DeadFilter(task="t"), per_second=5), Replayed)
    assert_type(app.dead_letters.purge(DeadFilter(task="t")), int)
    assert_type(app.schedules.all(), list[Schedule])
    assert_type(app.schedules.create("s", task="t", every="1h", note="why"), Written)
    assert_type(app.schedules.pause("s", note="why"), list[ScheduleDone])
    assert_type(app.backfills.start(plan), Backfill)
    assert_type(app.workflows.cancel(5, now=True), WorkflowDone)
    assert_type(app.queues.all(), list[QueueInfo])
    assert_type(app.queues.drain("mail", within=timedelta(minutes=1)), int)
    assert_type(app.queues.drain("mail", within="1m"), int)
    assert_type(app.admin("ada").tokens.create("ci", role="viewer"), Shown)
    assert_type(app.admin("ada").audit_log.find(), list[RecordedOrder])

    app.jobs.cancel("42")  # type: ignore[arg-type]
    app.jobs.cancel()  # type: ignore[call-arg]
    app.queues.pause("mail", author="ada")  # type: ignore[call-arg]
    app.queues.drain("mail", within=None)  # type: ignore[arg-type]
    app.schedules.create("s", note=1)  # type: ignore[arg-type]
    app.admin(7)  # type: ignore[arg-type]


async def awaited(app: Mainspring) -> None:
    assert_type(await app.jobs.acancel(42), list[Done])
    assert_type(await app.queues.apause("mail", note="why"), bool)
    assert_type(await app.dead_letters.areplay_all(on_page=lambda page: page.left > 0), Replayed)

    await app.jobs.cancel(42)  # type: ignore[misc]
    await app.jobs.acancel("42")  # type: ignore[arg-type]
