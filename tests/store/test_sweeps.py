"""On PostgreSQL what lies before the hints is found although no look is at everything."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from mainspring.model.job import NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.store.opener import open_store
from mainspring.store.postgres import hints
from mainspring.testing import ManualClock
from tests.support.desk import HOUR

JOBS = 150
QUEUES = ("a", "b")


class Ticking(ManualClock):
    """On which everything takes a millisecond."""

    def __init__(self) -> None:
        super().__init__()
        self._ticks = 0

    def monotonic(self) -> float:
        self._ticks += 1
        return super().monotonic() + self._ticks / 1000


@pytest.fixture
def clock():
    return Ticking()


@pytest.fixture
def stores(postgres_url, clock, run, monkeypatch):
    """The one that claims, for which every look is too long, and another that puts jobs in."""
    monkeypatch.setattr(hints.Sweep, "_limit", 0.0002)
    monkeypatch.setattr(hints, "NEAR_SHARE", 0.0)
    monkeypatch.setattr(hints, "BUSY_SHARE", 0.5)
    monkeypatch.setattr(hints, "IDLE_SHARE", 0.5)
    monkeypatch.setattr(hints, "NEAR_EVERY", 60.0)
    monkeypatch.setattr(hints, "WHOLE", 0.0)
    monkeypatch.setattr(hints, "FULL", 0.0)
    opened = [open_store(postgres_url, clock=clock) for _ in range(2)]
    yield opened
    for store in opened:
        run(store.close())


@pytest.fixture
def looks(monkeypatch):
    """Where claims look, as they do."""
    seen: list[hints.Stretch | None] = []
    original = hints.Hints.looks

    def noted(self, *asked):
        for stretch in original(self, *asked):
            seen.append(stretch)
            yield stretch

    monkeypatch.setattr(hints.Hints, "looks", noted)
    return seen


def test_every_job_is_found_in_some_stretch_and_once(stores, looks, clock, run):
    claiming, other = stores

    async def claim(limit):
        return await claiming.queue.claim(1, queues=QUEUES, tasks=["t"], limit=limit, at=clock.stamp())

    async def story():
        random = Random(11)
        await claiming.processes.join(
            NewProcess(id=1, role=Role.WORKER, name="w"), lease=HOUR, at=clock.stamp()
        )
        found = {}
        for _ in range(JOBS):
            now = clock.now()
            # All before the hints, but for the first: far back, a little, and at the very same moment.
            back = random.choice([timedelta(days=400), timedelta(hours=3), timedelta(seconds=3), timedelta()])
            new = NewJob(
                task="t",
                payload=b"x",
                queue=random.choice(QUEUES),
                priority=random.choice([0, 5]),
                run_at=now - back * random.random(),
            )
            await other.queue.insert([new], at=now)
            for job in await claim(random.choice([1, 3])):
                found[job.job_id] = found.get(job.job_id, 0) + 1
            clock.advance(timedelta(milliseconds=random.randrange(2000)))
        for _ in range(20 * JOBS):
            if len(found) == JOBS:
                break
            for job in await claim(3):
                found[job.job_id] = found.get(job.job_id, 0) + 1
        return found

    found = run(story())

    assert (len(found), set(found.values())) == (JOBS, {1})
    assert any(stretch and stretch.after and stretch.until for stretch in looks), "no piece was looked at"


def test_a_claim_that_looks_everywhere_misses_nothing(stores, clock, run, monkeypatch):
    monkeypatch.setattr(hints, "NEAR_SHARE", 1e9)
    monkeypatch.setattr(hints, "NEAR_EVERY", 1e9)
    monkeypatch.setattr(hints, "IDLE_SHARE", 1e9)
    claiming, other = stores

    async def claim(**options):
        asked = {"queues": QUEUES, "tasks": ["t"], "limit": 3, "at": clock.stamp()}
        return [each.job_id for each in await claiming.queue.claim(1, **asked, **options)]

    async def put(back):
        new = NewJob(task="t", payload=b"x", queue="a", run_at=clock.now() - back)
        [job_id] = await other.queue.insert([new], at=clock.now())
        return job_id

    async def story():
        await claiming.processes.join(
            NewProcess(id=1, role=Role.WORKER, name="w"), lease=HOUR, at=clock.stamp()
        )
        first = await put(timedelta())
        assert await claim() == [first]
        await claim()  # whatever is owed from the start
        late = await put(timedelta(hours=3))
        assert await claim() == [], "nobody looks there yet"
        assert await claim(everywhere=True) == [late]

    run(story())
