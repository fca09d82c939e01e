"""A store, a clock and a loop behind short words, for tests that tell stories about jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from mainspring.model.dead_letter import DeadFilter, DeadGroup, DeadJob
from mainspring.model.job import Claim, Failure, Inserted, Job, JobEdit, JobFilter, NewJob
from mainspring.model.limit import LimitKeyInfo
from mainspring.model.process import Beat, NewProcess, ProcessInfo, Reaped, Role, Watch
from mainspring.model.run import Run, Settlement, Verdict
from mainspring.model.schedule import (
    Advance,
    Backfill,
    BackfillSlot,
    Chunk,
    NewBackfill,
    NewSchedule,
    Opening,
    Schedule,
    ScheduleVersion,
    Slot,
    Spec,
)
from mainspring.store.store import Store
from mainspring.testing.clock import ManualClock
from mainspring.triggers.misfire import BREAKER

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LEASE = timedelta(seconds=15)
BOOM = Failure(type="ValueError", message="boom", traceback="line 1\nline 2")


def settlement(claim: Claim, verdict: Verdict, **fields: Any) -> Settlement:
    """How one claim ended; a failing verdict gets a failure if none is given."""
    if verdict in (Verdict.FAILED, Verdict.DEAD, Verdict.CRASHED, Verdict.DISCARDED):
        fields.setdefault("failure", BOOM)
    return Settlement(
        job_id=claim.job_id, worker_id=claim.worker_id, fence=claim.fence, verdict=verdict, **fields
    )


class Desk:
    """Every call is stamped with the clock and run to its end."""

    def __init__(self, store: Store, clock: ManualClock, run: Callable[[Any], Any]) -> None:
        self.store, self.clock, self.run = store, clock, run

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def advance(self, by: timedelta) -> None:
        self.clock.advance(by)

    # Jobs.

    def put(self, task: str = "t", payload: bytes = b"{}", **fields: Any) -> int:
        """Insert one job; answer its id."""
        [job_id] = self.put_all(NewJob(task=task, payload=payload, **fields))
        return job_id

    def put_all(self, *jobs: NewJob) -> list[int]:
        return list(self.run(self.store.queue.insert(jobs, at=self.clock.stamp())))

    def put_unique(self, *jobs: NewJob) -> list[Inserted]:
        return list(self.run(self.store.queue.insert_unique(jobs, at=self.clock.stamp())))

    def claim(
        self,
        worker: int = 1,
        *,
        queues: Sequence[str] = ("default",),
        tasks: Sequence[str] = ("t",),
        limit: int = 10,
        **how: Any,
    ) -> list[Claim]:
        """Claim under a lease the worker already has."""
        stamp = self.clock.stamp()
        claims = self.store.queue.claim(worker, queues=queues, tasks=tasks, limit=limit, at=stamp, **how)
        return list(self.run(claims))

    def begin(self, claim: Claim) -> bool:
        """Put on record that its run begins."""
        return bool(self.run(self.store.queue.begin(claim, at=self.clock.stamp())))

    def take(self, worker: int = 1, **fields: Any) -> Claim:
        """Join if need be, and claim exactly one job."""
        if worker not in [member.id for member in self.processes()]:
            self.join(worker)
        [claim] = self.claim(worker, limit=1, **fields)
        return claim

    def started(self, worker: int = 1, **fields: Any) -> Claim:
        """Insert a job and claim it."""
        job_id = self.put(**fields)
        claim = self.take(worker, tasks=(fields.get("task", "t"),), queues=(fields.get("queue", "default"),))
        assert claim.job_id == job_id
        return claim

    def held(self, worker: int = 1) -> list[Claim]:
        return list(self.run(self.store.queue.held(worker, at=self.clock.stamp())))

    def settle(self, *settlements: Settlement) -> list[int]:
        return list(self.run(self.store.queue.settle(settlements, at=self.clock.stamp())))

    def end(self, claim: Claim, verdict: Verdict, **fields: Any) -> None:
        """Settle one claim, which must be accepted."""
        assert self.settle(settlement(claim, verdict, **fields)) == []

    def bury(self, **fields: Any) -> int:
        """Insert a job and let it die of its first run; answer its id."""
        claim = self.started(**fields)
        self.end(claim, Verdict.DEAD)
        return claim.job_id

    def recorded(self, *settlements: Settlement) -> list[int]:
        return list(self.run(self.store.queue.recorded(settlements)))

    def cancel(self, *job_ids: int) -> dict[int, str | None]:
        done = self.run(self.store.jobs.cancel(job_ids, at=self.clock.stamp()))
        return {cancelled.job_id: cancelled.was for cancelled in done}

    def hasten(self, *job_ids: int) -> list[int]:
        return list(self.run(self.store.jobs.run_now(job_ids, at=self.clock.stamp())))

    def reschedule(self, *job_ids: int, to: datetime) -> list[int]:
        stamp = self.clock.stamp()
        return list(self.run(self.store.jobs.reschedule(job_ids, run_at=to, at=stamp)))

    def edit_job(self, job: Job, **fields: Any) -> bool:
        """Change a job that was read as this."""
        return bool(self.run(self.store.jobs.edit(job, JobEdit(**fields), at=self.clock.stamp())))

    def replay(self, *job_ids: int) -> list[int]:
        return list(self.run(self.store.dead_letters.replay(job_ids, at=self.clock.stamp())))

    def purge(self, *job_ids: int) -> int:
        return int(self.run(self.store.dead_letters.purge(job_ids)))

    def edit_dead(self, job_id: int, payload: bytes, *, expected: bytes = b"{}") -> bool:
        note = Failure(type="Edited", message="its arguments were edited by ann")
        stamp = self.clock.stamp()
        edit = self.store.dead_letters.edit(job_id, payload=payload, expected=expected, note=note, at=stamp)
        return bool(self.run(edit))

    def expire(self, limit: int = 100) -> list[int]:
        return list(self.run(self.store.jobs.expire(limit=limit, at=self.clock.stamp())))

    def prune(self, keep: timedelta) -> int:
        return int(self.run(self.store.prune(keep=keep, at=self.clock.stamp())))

    # Limits and queues.

    def admit(self) -> int:
        """One pass at the limit keys; answer how many passed."""
        return int(self.run(self.store.limits.admit(at=self.clock.stamp())).admitted)

    def admit_all(self) -> int:
        """Passes until one lets nobody through."""
        count = 0
        while passed := self.admit():
            count += passed
        return count

    def limit_keys(self, **which: Any) -> list[LimitKeyInfo]:
        return list(self.run(self.store.limits.keys(**{"limit": 100, "holders": 10, **which})))

    def pause_queue(self, queue: str = "default", *, author: str = "ann", note: str | None = None) -> bool:
        stamp = self.clock.stamp()
        return bool(self.run(self.store.queues.pause(queue, author=author, note=note, at=stamp)))

    def resume_queue(self, queue: str = "default") -> bool:
        return bool(self.run(self.store.queues.resume(queue)))

    # Fleet.

    def join(
        self, worker: int = 1, *, lease: timedelta = LEASE, role: Role = Role.WORKER, **fields: Any
    ) -> None:
        fields.setdefault("name", f"{role}-{worker}")
        member = NewProcess(id=worker, role=role, **fields)
        self.run(self.store.processes.join(member, lease=lease, at=self.clock.stamp()))

    def beat(self, worker: int = 1, *claims: Claim, lease: timedelta = LEASE) -> Beat:
        named = [(claim.job_id, claim.fence) for claim in claims]
        return self.run(self.store.processes.beat(worker, lease=lease, claims=named, at=self.clock.stamp()))

    def leave(self, worker: int = 1, *, clean: bool = True) -> None:
        self.run(self.store.processes.leave(worker, clean=clean, at=self.clock.stamp()))

    def reap(self, limit: int = 100, watch: Watch | None = None) -> Reaped:
        return self.run(self.store.processes.reap(limit=limit, watch=watch, at=self.clock.stamp()))

    def mark_orphans_dead(self) -> int:
        return int(self.run(self.store.processes.mark_orphans_dead(at=self.clock.stamp())))

    def reap_all(self) -> list[Reaped]:
        """Reap until a pass finds nothing."""
        passes = []
        while (done := self.reap()) != Reaped():
            passes.append(done)
        return passes

    def lose(self, worker: int = 1, *begun: Claim) -> None:
        """Let the worker's lease run out, and reap it; it had put on record that these runs begin."""
        for claim in begun:
            assert self.begin(claim)
        self.advance(LEASE)
        self.reap_all()

    # Schedules.

    def schedule(self, name: str = "s", **fields: Any) -> list[str]:
        """Put one schedule; by default minutely, from the next minute on."""
        return self.schedule_all(self.new_schedule(name, **fields))

    def new_schedule(self, name: str = "s", **fields: Any) -> NewSchedule:
        given = {
            "task": "t",
            "trigger": "every minute",
            "payload": b"{}",
            "next_at": self.now + MINUTE,
            "following_at": self.now + 2 * MINUTE,
        }
        return NewSchedule(name=name, **{**given, **fields})

    def schedule_all(self, *schedules: NewSchedule, **how: Any) -> list[str]:
        return list(self.run(self.store.schedules.put(schedules, **how, at=self.clock.stamp())))

    def edit(
        self,
        name: str = "s",
        *,
        author: str = "ann",
        note: str | None = None,
        expected: dict[str, Schedule | None] | None = None,
        **fields: Any,
    ) -> list[str]:
        """Put one schedule by hand."""
        how = {"author": author, "note": note, "expected": expected}
        return self.schedule_all(self.new_schedule(name, **fields), **how)

    def pause(self, *names: str, author: str = "ann", note: str | None = None) -> list[str]:
        stamp = self.clock.stamp()
        return list(self.run(self.store.schedules.pause(names or ("s",), author=author, note=note, at=stamp)))

    def resume(self, *names: str, author: str = "ann") -> list[str]:
        stamp = self.clock.stamp()
        return list(self.run(self.store.schedules.resume(names or ("s",), author=author, at=stamp)))

    def revert(self, *names: str, author: str = "ann", note: str | None = None) -> list[str]:
        stamp = self.clock.stamp()
        wanted = names or ("s",)
        return list(self.run(self.store.schedules.revert(wanted, author=author, note=note, at=stamp)))

    def skip(self, count: int, name: str = "s", author: str = "ann") -> bool:
        stamp = self.clock.stamp()
        return bool(self.run(self.store.schedules.skip(name, count=count, author=author, at=stamp)))

    def trigger(self, name: str = "s") -> int | None:
        return self.run(self.store.schedules.trigger(name, at=self.clock.stamp()))

    def delete(self, *names: str, author: str = "ann") -> list[str]:
        stamp = self.clock.stamp()
        return list(self.run(self.store.schedules.delete(names or ("s",), author=author, at=stamp)))

    def release(self) -> int:
        """Make due what waited for jobs that have ended."""
        return int(self.run(self.store.slots.release_held(at=self.clock.stamp())))

    def due(self, limit: int = 10) -> list[Spec]:
        now, specs = self.run(self.store.slots.due_specs(limit=limit, at=self.clock.stamp()))
        assert now == self.now
        return list(specs)

    def unplanned(self, limit: int = 10) -> list[Spec]:
        return list(self.run(self.store.slots.unplanned_specs(limit=limit)))

    def plan(self, *specs: Spec) -> None:
        self.run(self.store.slots.plan_specs(specs))

    def open(self, spec: Spec, **fields: Any) -> int:
        """Open the spec's next slot; by default the one after it is a minute later."""
        return self.open_all(self.opening(spec, **fields))

    def opening(self, spec: Spec, **fields: Any) -> Opening:
        given = {
            "expected": spec.next_at,
            "slot_at": spec.next_at,
            "since": None,
            "next_at": spec.next_at + MINUTE,
        }
        return Opening(spec_id=spec.id, **{**given, **fields})

    def open_all(self, *openings: Opening) -> int:
        return int(self.run(self.store.slots.open_firings(openings, at=self.clock.stamp())))

    def fire(self, limit: int = 100, breaker: int = BREAKER) -> Chunk | None:
        return self.run(self.store.slots.fire(limit=limit, breaker=breaker, at=self.clock.stamp()))

    def fire_all(self, limit: int = 100, breaker: int = BREAKER) -> list[Chunk]:
        """Fire until no fire is open."""
        chunks = []
        while (chunk := self.fire(limit, breaker)) is not None:
            chunks.append(chunk)
        return chunks

    def fire_due(self, limit: int = 100, **fields: Any) -> list[Chunk]:
        """Open every due spec's next slot and fire them all."""
        for spec in self.due():
            assert self.open(spec, **fields) == 1
        return self.fire_all(limit)

    def next_due(self) -> timedelta | None:
        return self.run(self.store.slots.next_due(at=self.clock.stamp()))

    # Backfills.

    def backfill(self, *slots: BackfillSlot, **fields: Any) -> int:
        """Put a backfill on record; answer its id."""
        given = {"schedule": "s", "start": self.now - DAY, "end": self.now, "author": "ann", "slots": slots}
        new = NewBackfill(**{**given, **fields})
        return int(self.run(self.store.backfills.add(new, at=self.clock.stamp())))

    def past(self, slot_at: datetime, *, seen: int | None = None, name: str = "s") -> BackfillSlot:
        """A slot of the past, as the schedule's newest version."""
        version = self.versions(name)[-1]
        return BackfillSlot(
            slot_at=slot_at, schedule_id=version.schedule.id, version=version.version, seen=seen
        )

    def move_backfills(self) -> Advance:
        return self.run(self.store.backfills.advance(at=self.clock.stamp()))

    def the_backfill(self, backfill_id: int) -> Backfill:
        found = self.run(self.store.backfills.get(backfill_id))
        assert found is not None
        return found

    # History.

    def job(self, job_id: int) -> Job:
        found = self.find(job_id)
        assert found is not None
        return found

    def find(self, job_id: int) -> Job | None:
        return self.run(self.store.jobs.get(job_id, at=self.clock.stamp()))

    def jobs(self, **which: Any) -> list[Job]:
        return list(self.run(self.store.jobs.find(JobFilter(**which), at=self.clock.stamp())))

    def runs(self, job_id: int) -> list[Run]:
        return list(self.run(self.store.runs.of(job_id)))

    def dead(self, **which: Any) -> list[DeadJob]:
        return list(self.run(self.store.dead_letters.find(DeadFilter(**which))))

    def count_dead(self, **which: Any) -> int:
        return int(self.run(self.store.dead_letters.count(DeadFilter(**which))))

    def dead_groups(self, **which: Any) -> list[DeadGroup]:
        return list(self.run(self.store.dead_letters.groups(DeadFilter(**which))))

    def schedules(self) -> list[Schedule]:
        return list(self.run(self.store.schedules.all()))

    def the_schedule(self, name: str = "s") -> Schedule:
        found = self.run(self.store.schedules.get(name))
        assert found is not None
        return found

    def versions(self, name: str = "s") -> list[ScheduleVersion]:
        return list(self.run(self.store.schedules.versions(name)))

    def slots(self, schedule: str = "s", limit: int = 100) -> list[Slot]:
        return list(self.run(self.store.slots.of(schedule, limit=limit)))

    def processes(self) -> list[ProcessInfo]:
        return list(self.run(self.store.processes.all(at=self.clock.stamp())))

    def depth(self) -> list[Any]:
        return list(self.run(self.store.queues.depth(at=self.clock.stamp())))
