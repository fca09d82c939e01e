"""The same random operations on both stores give the same answers and leave the same record.

Ids are the stores' own business, so answers are compared after giving each job the number of its
creation, each schedule its name and each spec its trigger. What the stores promise about ids is their
order, which decides between jobs of one moment.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import asyncpg
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mainspring.model.dead_letter import DeadFilter
from mainspring.model.job import Failure, JobEdit, JobFilter, JobState, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Reason, Settlement, Verdict
from mainspring.model.schedule import Misfire, NewSchedule, Opening, Overlap, Skipped
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock

EXAMPLES, STEPS = 50, 40
MOST_JOBS = 10
NOBODY = 999
NO_JOB = 10**9
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)

seconds = st.sampled_from([0, 1, 7, 60]).map(lambda n: timedelta(seconds=n))
queues = st.sampled_from(["x", "y"])
tasks = st.sampled_from(["a", "b"])
# Chance alone seldom gets as far as a claim that is settled by its owner: most picks are such that
# something happens, and the newest worker and the newest claims are the likeliest.
some_queues = st.sampled_from([["x", "y"], ["y", "x"], ["x", "y"], ["y"]])
some_tasks = st.sampled_from([["a", "b"], ["a", "b"], ["a", "b"], ["b"], []])
priorities = st.sampled_from([-1, 0, 3])
rarely = st.sampled_from([False, False, False, True])
payloads = st.sampled_from([b"", b"1", b"\x00\xff"])
leases = st.sampled_from([10, 90, 3600]).map(lambda n: timedelta(seconds=n))
failures = st.builds(
    Failure, type=st.just("E"), message=st.sampled_from(["boom", "☃", ""]), traceback=st.just("tb")
)
picks = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 10**6))
many_picks = st.lists(picks, min_size=1, max_size=3)
new_jobs = st.builds(
    NewJob,
    task=tasks,
    payload=payloads,
    queue=queues,
    priority=priorities,
    run_at=st.one_of(
        st.none(), st.integers(-60, 60).map(lambda n: datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=n))
    ),
    delay=seconds,
    max_attempts=st.integers(1, 3),
    expires=st.sampled_from([None, None, timedelta(seconds=30)]),
    expires_at=st.sampled_from([None, None, None, datetime(2030, 1, 1, 0, 2, tzinfo=UTC)]),
)
due_jobs = st.builds(
    NewJob,
    task=tasks,
    payload=payloads,
    queue=queues,
    priority=priorities,
    max_attempts=st.integers(1, 3),
)
edits = st.builds(
    JobEdit,
    payload=st.none() | payloads,
    priority=st.none() | priorities,
    queue=st.none() | queues,
    max_attempts=st.none() | st.integers(1, 3),
    expires=st.sampled_from([None, None, timedelta(seconds=30)]),
    no_deadline=st.booleans(),
)
names = st.sampled_from(["s1", "s2", "s3"])
# Jitter is left out: it is chance, and the stores do not share their dice.
policies = st.fixed_dictionaries(
    {
        "overlap": st.sampled_from(Overlap),
        "overlap_limit": st.integers(1, 2),
        "misfire": st.sampled_from(Misfire),
        "catch_up": st.sampled_from([None, timedelta(seconds=60), timedelta(days=1)]),
        "offset": st.sampled_from([0, 0, 30]).map(lambda n: timedelta(seconds=n)),
        "max_fires": st.sampled_from([None, None, 2]),
        "expires": st.sampled_from([None, None, timedelta(seconds=90)]),
    }
)
authors = st.sampled_from([None, None, None, "ann"])
endings = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from(
            [
                Verdict.SUCCEEDED,
                Verdict.FAILED,
                Verdict.FAILED,
                Verdict.DEAD,
                Verdict.RELEASED,
                Verdict.CRASHED,
                Verdict.SNOOZED,
                Verdict.DISCARDED,
            ]
        ),
        "reason": st.sampled_from([None, *Reason]),
        "delay": seconds,
        "took": seconds,
        "failure": failures,
        "result": st.sampled_from([None, b"1"]),
        "ran": st.booleans(),
    }
)


FILTERS = {
    "by reason": DeadFilter(reason="expired", limit=1000),
    "by error": DeadFilter(error="E", limit=1000),
    "by text": DeadFilter(text="☃", limit=1000),
    "by task": DeadFilter(task="a", limit=2),
    "by time": DeadFilter(
        died_from=datetime(2030, 1, 1, 0, 1, tzinfo=UTC),
        died_before=datetime(2030, 1, 1, 2, tzinfo=UTC),
        limit=9,
    ),
}


def some_jobs(machine):
    return bool(machine.sides[0].job_ids)


def some_claims(machine):
    return bool(machine.claims)


def room(machine):
    """Every step reads every job back, so a story has no more than a few."""
    return len(machine.sides[0].job_ids) < MOST_JOBS


def some_room_left(machine):
    """Slots may still come when jobs may not."""
    return len(machine.sides[0].job_ids) < 2 * MOST_JOBS


class Side:
    """One store, with its own ids and what they stand for."""

    def __init__(self, store):
        self.store = store
        self.job_ids = []
        self.numbers = {}
        self.schedule_names = {}
        self.triggers = {}
        self.spec_ids = {}
        self.database_id = ""

    def created(self, job_ids):
        for job_id in job_ids:
            self.numbers[job_id] = len(self.job_ids)
            self.job_ids.append(job_id)

    def plain(self, value):
        """A value with this side's ids taken out."""
        if isinstance(value, list | tuple):
            return [self.plain(item) for item in value]
        if not isinstance(value, msgspec.Struct):
            return value
        told = {name: self.plain(getattr(value, name)) for name in value.__struct_fields__}
        kind = type(value).__name__
        if kind in ("Job", "DeadJob"):
            told["id"] = self.numbers[told["id"]]
        if kind == "Schedule":
            del told["id"]
        if kind == "Spec":
            del told["id"]
        if told.pop("database_id", self.database_id) != self.database_id:
            raise AssertionError(f"a claim of another database: {value}")
        for name in ("job_id", "blocker"):
            if told.get(name) is not None:
                told[name] = self.numbers.get(told[name], NO_JOB)
        if told.get("schedule_id") is not None:
            told["schedule_id"] = self.schedule_names[told["schedule_id"]]
        return kind, told

    def job_id(self, number):
        return self.job_ids[number] if number < len(self.job_ids) else NO_JOB


class Stores(RuleBasedStateMachine):
    """SQLite in memory beside PostgreSQL, under one clock."""

    def __init__(self, run, postgres, reset):
        super().__init__()
        self.run = run
        self.clock = ManualClock()
        reset()
        self.sides = [Side(open_store("sqlite://:memory:", clock=self.clock)), Side(postgres)]
        self.run(self.sides[0].store.migrate())
        for side in self.sides:
            side.database_id = self.run(side.store.identity())
        self.workers = [NOBODY]
        self.claims = []
        self.new_worker = 1

    def teardown(self):
        self.run(self.sides[0].store.close())

    def both(self, call):
        """Call both stores; answer what each said."""
        return [self.run(call(side)) for side in self.sides]

    def agree(self, call, key=None):
        """Call both stores; they must say the same."""
        left, right = (
            self.comparable(side, said, key) for side, said in zip(self.sides, self.both(call), strict=True)
        )
        assert left == right
        return left

    def agree_on_jobs(self, call):
        """The same for answers that are ids of jobs, in any order."""
        left, right = (
            sorted(side.numbers[job_id] for job_id in said)
            for side, said in zip(self.sides, self.both(call), strict=True)
        )
        assert left == right

    @staticmethod
    def comparable(side, said, key):
        told = side.plain(said)
        return sorted(told, key=key) if key else told

    @property
    def at(self):
        return self.clock.stamp()

    def numbers(self, chosen):
        """Numbers of jobs that are, and now and then of one that never was."""
        count = len(self.sides[0].job_ids)
        return sorted({(count - 1 - pick) % (count + 1) for pick in chosen})

    def worker(self, pick):
        return self.workers[-1 - pick % len(self.workers)]

    # Time.

    @rule(by=st.sampled_from([1, 1, 5, 30, 60, 7200]))
    def advance(self, by):
        self.clock.advance(timedelta(seconds=by))

    # Jobs.

    @precondition(room)
    @rule(jobs=st.lists(new_jobs, min_size=1, max_size=3))
    def insert(self, jobs):
        for side, ids in zip(
            self.sides, self.both(lambda side: side.store.queue.insert(jobs, at=self.at)), strict=True
        ):
            assert len(ids) == len(jobs)
            side.created(ids)

    # Hypothesis leaves out whole rules at a time, so each of these is a story of its own.

    @precondition(room)
    @rule(job=due_jobs, lease=leases, end=endings)
    def work(self, job, lease, end):
        """A worker comes, takes a job or two and ends the newest."""
        self.insert([job])
        self.join(lease, Role.WORKER)
        self.claim(0, ["x", "y"], ["a", "b"], 2)
        self.settle([0], **end)

    @precondition(some_jobs)
    @rule(end=endings, by=st.sampled_from([0, 1, 61]))
    def work_on(self, end, by):
        """The newest worker goes on with what there is."""
        self.advance(by)
        self.claim(0, ["y", "x"], ["a", "b"], 1)
        if self.claims:
            self.settle([0], **end)

    @precondition(room)
    @rule(job=due_jobs, beats=st.booleans())
    def crash(self, job, beats):
        """A worker dies over a job, and its successor takes over; the dead one's word counts no more."""
        self.insert([job])
        self.join(timedelta(seconds=10), Role.WORKER)
        self.claim(0, ["x", "y"], ["a", "b"], 2)
        if beats:
            self.begin(0)
        self.advance(11)
        self.reap()
        self.join(timedelta(seconds=90), Role.WORKER)
        self.claim(0, ["x", "y"], ["a", "b"], 2)
        if beats and self.claims:
            self.beat(0, timedelta(seconds=90), [0, 1, 2])
            self.beat(1, timedelta(seconds=90), [0, 1, 2])

    @precondition(room)
    @rule(job=due_jobs, end=endings)
    def replay(self, job, end):
        """A job dies, is brought back and runs again, while its first worker still clings to it."""
        self.work(job, timedelta(seconds=90), {**end, "verdict": Verdict.DEAD})
        self.bring_back([0, 1, 2], "dead_letters.replay")
        self.work_on(end, 0)
        self.settle([1, 0], **end)

    @precondition(some_claims)
    @rule(pick=picks)
    def begin(self, pick):
        """A run is put on record as begun, of a claim old or new."""
        if not self.claims:
            return
        pair = dict(zip(self.sides, self.claims[-1 - pick % len(self.claims)], strict=True))
        self.agree(lambda side: side.store.queue.begin(pair[side], at=self.at))

    @precondition(some_jobs)
    @rule(
        pick=picks,
        queues=some_queues,
        tasks=some_tasks,
        limit=st.integers(1, 4),
        orphans=st.sampled_from([None, 0, 1, 2]),
        last=st.booleans(),
    )
    def claim(self, pick, queues, tasks, limit, orphans=None, last=True):
        worker = self.worker(pick)
        which = {"queues": queues, "tasks": tasks, "limit": limit, "orphans": orphans, "last": last}
        claimed = self.both(lambda side: side.store.queue.claim(worker, **which, at=self.at))
        left, right = (side.plain(claims) for side, claims in zip(self.sides, claimed, strict=True))
        assert left == right
        self.claims += list(zip(*claimed, strict=True))

    @precondition(some_claims)
    @rule(chosen=many_picks, end=endings)
    def settle_some(self, chosen, end):
        self.settle(chosen, **end)

    def settle(self, chosen, verdict, reason, delay, took, failure, result, ran):
        batch = self.settlements(chosen, verdict, reason, delay, took, failure, result, ran)
        self.agree_on_jobs(lambda side: side.store.queue.settle(batch[side], at=self.at))
        self.agree_on_jobs(lambda side: side.store.queue.recorded(batch[side]))

    def settlements(self, chosen, verdict, reason, delay, took, failure, result, ran):
        """One batch for each side, of claims old and new, no job twice."""
        pairs = {}
        for pick in chosen if self.claims else ():
            pair = self.claims[-1 - pick % len(self.claims)]
            pairs[pair[0].job_id] = pair
        fails = verdict in (Verdict.FAILED, Verdict.DEAD, Verdict.CRASHED, Verdict.DISCARDED)
        dies = verdict in (Verdict.DEAD, Verdict.CRASHED)
        return {
            side: [
                Settlement(
                    job_id=pair[place].job_id,
                    worker_id=pair[place].worker_id,
                    fence=pair[place].fence,
                    verdict=verdict,
                    took=took,
                    delay=delay,
                    failure=failure if fails else None,
                    result=result if verdict is Verdict.SUCCEEDED else None,
                    ran=ran or verdict not in (Verdict.RELEASED, Verdict.DEAD),
                    reason=reason if dies else None,
                )
                for pair in pairs.values()
            ]
            for place, side in enumerate(self.sides)
        }

    @precondition(some_jobs)
    @rule(chosen=many_picks)
    def cancel(self, chosen):
        numbers = self.numbers(chosen)
        self.agree(
            lambda side: side.store.jobs.cancel([side.job_id(n) for n in numbers], at=self.at), key=str
        )

    @precondition(some_jobs)
    @rule(chosen=many_picks, name=st.sampled_from(["jobs.run_now", "dead_letters.replay"]))
    def bring_back(self, chosen, name):
        numbers = self.numbers(chosen)
        self.agree_on_jobs(
            lambda side: attrgetter(name)(side.store)([side.job_id(n) for n in numbers], at=self.at)
        )

    @precondition(some_jobs)
    @rule(chosen=many_picks, seconds=st.integers(-60, 120))
    def reschedule(self, chosen, seconds):
        numbers, then = self.numbers(chosen), self.at + timedelta(seconds=seconds)
        self.agree_on_jobs(
            lambda side: side.store.jobs.reschedule(
                [side.job_id(n) for n in numbers], run_at=then, at=self.at
            )
        )

    @precondition(some_jobs)
    @rule(pick=picks, edit=edits, stale=st.booleans())
    def edit_job(self, pick, edit, stale):
        """A job that waits is changed, or one that was read before it was claimed and settled."""
        [number] = self.numbers([pick])

        async def change(side):
            job = await side.store.jobs.get(side.job_id(number), at=self.at)
            if job is None:
                return None
            if stale:
                job = msgspec.structs.replace(job, fence=job.fence + 1)
            return await side.store.jobs.edit(job, edit, at=self.at)

        self.agree(change)

    @precondition(some_jobs)
    @rule(chosen=st.lists(picks, max_size=1))
    def purge(self, chosen):
        numbers = self.numbers(chosen)
        self.agree(lambda side: side.store.dead_letters.purge([side.job_id(n) for n in numbers]))

    @precondition(some_jobs)
    @rule()
    def expire(self):
        self.agree_on_jobs(lambda side: side.store.jobs.expire(limit=1000, at=self.at))

    @precondition(room)
    @rule(job=due_jobs, by=st.sampled_from([1, 61]), end=endings)
    def run_late(self, job, by, end):
        """A job has a deadline, and is claimed, ended or swept around it."""
        self.insert([msgspec.structs.replace(job, expires=timedelta(seconds=30))])
        self.advance(by)
        self.claim(0, ["x", "y"], ["a", "b"], 2)
        self.expire()
        if self.claims:
            self.settle([0], **end)
        self.expire()

    @precondition(some_jobs)
    @rule(pick=picks, payload=payloads, expected=payloads)
    def edit_dead(self, pick, payload, expected):
        [number] = self.numbers([pick])
        note = Failure(type="Edited", message="by ann")
        self.agree(
            lambda side: side.store.dead_letters.edit(
                side.job_id(number), payload=payload, expected=expected, note=note, at=self.at
            )
        )

    # Fleet.

    @initialize(lease=leases)
    def first_worker(self, lease):
        self.join(lease, Role.WORKER)

    @rule(lease=leases, role=st.sampled_from(Role))
    def join(self, lease, role):
        member = NewProcess(
            id=self.new_worker, role=role, name=f"m{self.new_worker}", queues=("x",), tasks=("a", "b")
        )
        self.both(lambda side: side.store.processes.join(member, lease=lease, at=self.at))
        self.workers.append(self.new_worker)
        self.new_worker += 1

    @precondition(some_claims)
    @rule(pick=picks, lease=leases, chosen=many_picks)
    def beat(self, pick, lease, chosen):
        worker = self.worker(pick)
        named = [self.claims[-1 - pick % len(self.claims)] for pick in set(chosen)] if self.claims else []
        beats = self.both(
            lambda side: side.store.processes.beat(
                worker,
                lease=lease,
                claims=[(pair[self.sides.index(side)].job_id, pair[0].fence) for pair in named],
                at=self.at,
            )
        )
        left, right = (
            (beat.alive, sorted(side.numbers[job_id] for job_id in beat.lost))
            for side, beat in zip(self.sides, beats, strict=True)
        )
        assert left == right

    @rule(pick=picks, clean=st.booleans())
    def leave(self, pick, clean):
        worker = self.worker(pick)
        holds = any(self.both(lambda side: side.store.queue.held(worker, at=self.at)))
        self.both(lambda side: side.store.processes.leave(worker, clean=clean and not holds, at=self.at))

    @precondition(some_claims)
    @rule()
    def reap(self):
        left, right = self.both(lambda side: side.store.processes.reap(limit=1000, at=self.at))
        assert (sorted(left.processes), left.jobs) == (sorted(right.processes), right.jobs)
        buried = [
            [side.numbers[n] for n in each.buried]
            for side, each in zip(self.sides, (left, right), strict=True)
        ]
        assert buried[0] == buried[1]

    # Schedules.

    @rule(
        name=names,
        trigger=st.sampled_from(["t1", "t2"]),
        task=tasks,
        queue=queues,
        priority=priorities,
        payload=payloads,
        policy=policies,
        author=authors,
        ends=rarely,
    )
    def put_schedule(self, name, trigger, task, queue, priority, payload, policy, author, ends):
        slot = self.next_slot()
        schedule = NewSchedule(
            name=name,
            task=task,
            trigger=trigger,
            payload=payload,
            queue=queue,
            priority=priority,
            **policy,
            next_at=None if ends else slot,
            following_at=None if ends else slot + timedelta(minutes=1),
        )
        self.agree(lambda side: side.store.schedules.put([schedule], author=author, at=self.at))
        for side in self.sides:
            # Jobs outlive their schedules, so names are only ever added.
            side.schedule_names |= {s.id: s.name for s in self.run(side.store.schedules.all())}
        self.know_fired()

    @rule(some=st.sets(names, min_size=1), verb=st.sampled_from(["pause", "resume", "resume"]))
    def pause_or_resume(self, some, verb):
        note = {"note": "why"} if verb == "pause" else {}
        self.agree(
            lambda side: getattr(side.store.schedules, verb)(sorted(some), author="ann", at=self.at, **note),
            key=str,
        )
        self.know_fired()

    @rule(some=st.sets(names, min_size=1))
    def revert(self, some):
        self.agree(
            lambda side: side.store.schedules.revert(sorted(some), author="ann", note=None, at=self.at),
            key=str,
        )

    @rule(name=names, count=st.integers(1, 2))
    def skip(self, name, count):
        self.agree(lambda side: side.store.schedules.skip(name, count=count, author="ann", at=self.at))
        self.know_fired()

    @rule(some=st.sets(names, min_size=1, max_size=2), really=rarely)
    def delete(self, some, really):
        if really:
            self.agree(
                lambda side: side.store.schedules.delete(sorted(some), author="ann", at=self.at), key=str
            )

    @precondition(some_room_left)
    @rule(name=names)
    def trigger(self, name):
        made = self.both(lambda side: side.store.schedules.trigger(name, at=self.at))
        assert (made[0] is None) == (made[1] is None)
        self.sides[1].store.queue._batches._spare_ids.clear()  # as in `fire`
        for side, job_id in zip(self.sides, made, strict=True):
            side.created([job_id] if job_id is not None else [])

    @rule()
    def release(self):
        self.agree(lambda side: side.store.slots.release_held(at=self.at))

    def next_slot(self):
        now = self.clock.now()
        return now.replace(second=0, microsecond=500_000) + timedelta(minutes=1)

    @rule(
        latest=st.booleans(),
        stale=rarely,
        ends=rarely,
        repeats=rarely,
        skip=st.sampled_from([None, None, None, Skipped.CALENDAR]),
    )
    def open_firings(self, latest, stale, ends, repeats, skip):
        """Open what is due, now and then from an old look, for the last time, or the same slot again."""
        openings = {side: [] for side in self.sides}
        for side in self.sides:
            _, due = self.run(side.store.slots.due_specs(limit=10, at=FOREVER if stale else self.at))
            for spec in due:
                newest = max(spec.next_at, self.next_slot() - timedelta(minutes=1))
                openings[side].append(
                    Opening(
                        spec_id=spec.id,
                        expected=spec.next_at - timedelta(minutes=stale),
                        slot_at=newest if latest else spec.next_at,
                        since=spec.next_at if latest and newest > spec.next_at else None,
                        next_at=spec.next_at if repeats else None if ends else newest + timedelta(minutes=1),
                        skip=skip,
                        note=skip and f"{skip} of the spec",
                    )
                )
        self.agree(lambda side: side.store.slots.open_firings(openings[side], at=self.at))

    @precondition(some_room_left)
    @rule(
        name=names,
        trigger=st.sampled_from(["t1", "t2"]),
        payload=payloads,
        policy=policies,
        latest=st.booleans(),
        late=st.sampled_from([0, 0, 20, 60, 7200]),
        limit=st.integers(1, 3),
    )
    def tick(self, name, trigger, payload, policy, latest, late, limit):
        """A schedule is put, time comes to its next slot or beyond, and a scheduler does its round."""
        self.put_schedule(name, trigger, "a", "x", 0, payload, policy, None, False)
        to_slot = self.next_slot() - self.clock.now() + timedelta(milliseconds=500)
        self.clock.advance(to_slot + timedelta(seconds=late))
        self.plan(True)
        self.open_firings(latest, False, False, False, None)
        self.fire(limit)
        self.release()

    @rule(limit=st.integers(1, 3))
    def fire(self, limit):
        # Two live jobs trip the circuit breaker: with as few as there are here it has to be low.
        self.agree(lambda side: side.store.slots.fire(limit=limit, breaker=2, at=self.at))
        self.know_fired()

    def know_fired(self):
        """A fire has made jobs, or a change of a schedule has, of the slots that were due before it."""
        # PostgreSQL gives ids to inserts in blocks taken ahead, so a job inserted after a slot was fired
        # may have a lower id than the slot's. Without the block, ids rise with creation on both sides.
        self.sides[1].store.queue._batches._spare_ids.clear()
        for side in self.sides:
            ledger = [
                slot
                for name in ("s1", "s2", "s3")
                for slot in self.run(side.store.slots.of(name, limit=1000))
            ]
            new = [slot for slot in ledger if slot.job_id is not None and slot.job_id not in side.numbers]
            new.sort(key=lambda slot: (slot.slot_at, slot.schedule, slot.job_id))
            side.created(slot.job_id for slot in new)

    @rule(known=st.booleans())
    def plan(self, known):
        async def planned(side):
            specs = await side.store.slots.unplanned_specs(limit=10)
            await side.store.slots.plan_specs(
                [
                    msgspec.structs.replace(
                        s, following_at=s.next_at + timedelta(minutes=1) if known else None
                    )
                    for s in specs
                ]
            )
            return specs

        self.agree(planned, key=str)

    # Everything that can be read.

    @invariant()
    def the_record_is_the_same(self):
        left, right = (self.run(self.record(side)) for side in self.sides)
        assert left == right

    async def record(self, side):
        store, at = side.store, self.at
        told = {"live": await store.jobs.find(JobFilter(limit=1000), at=at)}
        for state in (JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED):
            told[state] = await store.jobs.find(JobFilter(state=state, limit=1000), at=at)
        told["dead letters"] = await store.dead_letters.find(DeadFilter(limit=1000))
        told["discarded"] = await store.jobs.find(JobFilter(state=JobState.DISCARDED, limit=1000), at=at)
        for name, which in FILTERS.items():
            told[name] = await store.dead_letters.find(which)
        told["depth"] = await store.queues.depth(at=at)
        plain = {name: sorted(side.plain(value), key=str) for name, value in told.items()}
        plain["counts"] = [await store.dead_letters.count(which) for which in FILTERS.values()]
        plain["groups"] = sorted(
            (group.task, group.error, group.line, group.count, group.newest_at)
            for group in await store.dead_letters.groups(DeadFilter(limit=1000))
        )
        plain["runs"] = [side.plain(await store.runs.of(job_id)) for job_id in side.job_ids]
        plain["jobs"] = [side.plain(await store.jobs.get(job_id, at=at)) for job_id in side.job_ids]
        plain["processes"] = side.plain(await store.processes.all(at=at))
        plain["held"] = [
            sorted(side.plain(await store.queue.held(worker, at=at)), key=str) for worker in self.workers[-3:]
        ]
        plain["schedules"] = side.plain(await store.schedules.all())
        plain["slots"] = [side.plain(await store.slots.of(name, limit=1000)) for name in ("s1", "s2", "s3")]
        plain["versions"] = [side.plain(await store.schedules.versions(name)) for name in ("s1", "s2", "s3")]
        now, due = await store.slots.due_specs(limit=1000, at=at)
        plain["due"] = (now, sorted(side.plain(due), key=str))
        plain["unplanned"] = sorted(side.plain(await store.slots.unplanned_specs(limit=1000)), key=str)
        plain["next due"] = await store.slots.next_due(at=at)
        return plain


TABLES = (
    "jobs",
    "runs",
    "dead_jobs",
    "processes",
    "schedules",
    "schedule_versions",
    "specs",
    "firings",
    "slots",
)


@pytest.mark.timeout(600)  # when it fails, finding the shortest story takes minutes
def test_both_stores_answer_alike_whatever_is_asked_of_them(postgres_url, run):
    postgres = open_store(postgres_url, clock=ManualClock(), hints=False)
    admin = run(asyncpg.connect(postgres_url))

    def reset():
        run(admin.execute(";".join(f"DELETE FROM mainspring.{table}" for table in TABLES)))

    try:
        run_state_machine_as_test(
            lambda: Stores(run, postgres, reset),
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        run(close(postgres, admin))


async def close(store, connection):
    await asyncio.gather(store.close(), connection.close())
