"""A store with something of everything in it, for tests that look at pages and for the pictures in the docs.

`spice` is put on every text that is stored: tests of pages add markup to it, which must stay text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mainspring.model.job import Claim, Failure
from mainspring.model.limit import LimitKey
from mainspring.model.process import Role
from mainspring.model.run import ProgressNote, Reason, Verdict
from mainspring.model.stats import BUCKETS, PLACES, Counted, Tally
from mainspring.store.store import Store
from mainspring.tasks.payload import encode
from mainspring.testing.clock import ManualClock
from tests.support.desk import HOUR, MINUTE, SECOND, Desk

NASTY = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>{{7*7}}javascript:alert(1)'"
TASKS = {
    "billing.invoice": "billing",
    "mail.digest": "mail",
    "reports.render": "reports",
    "crm.sync": "default",
    "media.thumbnails": "media",
    "search.reindex": "default",
}
_TRACE = """Traceback (most recent call last):
  File "/srv/shop/{file}", line {line}, in {name}
    {code}
  File "/srv/shop/clients.py", line 87, in call
    return self._session.request(method, url, timeout=self._timeout)
{error}
"""
_LOG = """2026-11-15 18:40:01.120 INFO  begin, tenant 4711
2026-11-15 18:40:01.346 INFO  412 rows to go through
2026-11-15 18:40:03.010 WARNING  slow answer of the tax service: 1.6s
2026-11-15 18:40:04.881 INFO  authorization: Bearer abcdef0123456789 was refreshed
"""


@dataclass
class Shown:
    """What tests want to find again."""

    running: int = 0
    retried: int = 0
    delayed: int = 0
    ready: int = 0
    succeeded: int = 0
    dead: list[int] = field(default_factory=list)
    limited: int = 0


class Showcase:
    """Fills a store, from three hours ago until now."""

    def __init__(self, store: Store, run: Callable[[Any], Any], spice: Callable[[str], str]) -> None:
        self._end = datetime.now(UTC)
        self.desk = Desk(store, ManualClock(self._end - 3 * HOUR), run)
        self._spice = spice
        self.shown = Shown()

    def fill(self) -> Shown:
        """All of it."""
        self._fleet()
        self._past()
        self._retried()
        self._dead_letters()
        self._schedules()
        self._now()
        self._limits()
        self._odds_and_ends()
        self._statistics()
        return self.shown

    def call(self, **fields: object) -> bytes:
        """Arguments with a secret among them."""
        given = {"tenant": 4711, "note": self._spice("as agreed"), "api_key": "sk-very-secret", **fields}
        return encode([], given, field="t")

    def _to(self, before_end: timedelta) -> None:
        moment = self._end - before_end
        if moment > self.desk.now:
            self.desk.clock.move_to(moment)

    def _fleet(self) -> None:
        tasks, queues = (
            tuple(self._spice(each) for each in TASKS),
            tuple(self._spice(each) for each in {*TASKS.values()}),
        )
        for number, name in enumerate(("web-1", "web-2", "batch-1"), 1):
            self.desk.join(
                0xA11CE + number,
                name=self._spice(name),
                queues=queues,
                tasks=tasks,
                version="0.5.0",
                tzdata="2026b",
                lease=9 * HOUR,
            )
        for number in (1, 2):
            self.desk.join(
                0x5CED + number,
                role=Role.SCHEDULER,
                name=self._spice(f"web-{number}"),
                version="0.5.0",
                tzdata="2026b",
                lease=9 * HOUR,
            )

    def _take(self, task: str, worker: int = 1) -> Claim:
        [claim] = self.desk.claim(
            0xA11CE + worker,
            tasks=(self._spice(task),),
            queues=(self._spice(TASKS[task]),),
            limit=1,
        )
        return claim

    def _put(self, task: str, **fields: Any) -> int:
        given = {"payload": self.call(), "queue": self._spice(TASKS[task]), "max_attempts": 5}
        return self.desk.put(self._spice(task), **{**given, **fields})

    def _past(self) -> None:
        names = list(TASKS)
        for number in range(48):
            task = names[number % len(names)]
            job_id = self._put(task)
            self.desk.advance((20 + number * 7 % 60) * SECOND)
            claim = self._take(task, 1 + number % 3)
            self.desk.advance((1 + number * 13 % 30) * SECOND)
            log = self._spice(_LOG) if number % 3 == 0 else None
            self.desk.end(
                claim,
                Verdict.SUCCEEDED,
                took=(1 + number * 13 % 30) * SECOND,
                result=b'{"rows":412}',
                log=log,
            )
            self.shown.succeeded = job_id
            self.desk.advance(40 * SECOND)

    def _dead_letters(self) -> None:
        kinds = (
            ("billing.invoice", "ConnectionError", "tax.example.com: connection refused", 14),
            ("crm.sync", "app.errors.Conflict", "contact 8812 was changed by somebody else", 6),
            ("reports.render", "KeyError", "'currency'", 3),
        )
        self._to(9 * MINUTE)
        for task, error, message, count in kinds:
            for _ in range(count):
                self._put(task, max_attempts=1)
                claim = self._take(task)
                self.desk.advance(2 * SECOND)
                self.desk.end(
                    claim,
                    Verdict.DEAD,
                    failure=self._failure(error, message, task),
                    reason=Reason.FAILED,
                    took=2 * SECOND,
                )
                self.shown.dead.append(claim.job_id)

    def _failure(self, error: str, message: str, task: str) -> Failure:
        file, name = task.replace(".", "/") + ".py", task.partition(".")[2]
        code = "answer = client.call(tenant, rows)"
        trace = _TRACE.format(file=file, line=42, name=name, code=code, error=f"{error}: {message}")
        return Failure(type=error, message=self._spice(message), traceback=self._spice(trace))

    def _retried(self) -> None:
        """One that failed twice and runs again."""
        self._to(40 * MINUTE)
        job_id = self._put("media.thumbnails", priority=5)
        for wait in (4 * MINUTE, 12 * MINUTE):
            self.desk.advance(25 * SECOND)
            claim = self._take("media.thumbnails", 3)
            self.desk.advance(70 * SECOND)
            failure = self._failure(
                "TimeoutError", "the image service did not answer in 60s", "media.thumbnails"
            )
            self.desk.end(
                claim, Verdict.FAILED, failure=failure, delay=wait, took=70 * SECOND, log=self._spice(_LOG)
            )
            self.desk.advance(wait)
        self.shown.retried = job_id

    def _schedules(self) -> None:
        spans = (
            ("billing.close-month", "billing.invoice", 0),
            ("mail.morning", "mail.digest", 1),
            ("crm.every-hour", "crm.sync", 2),
            ("reports.nightly", "reports.render", 3),
        )
        for name, task, hours in spans:
            moment = self._end.replace(minute=0, second=0, microsecond=0) + (hours + 1) * HOUR
            self.desk.schedule(
                self._spice(name),
                task=self._spice(task),
                queue=self._spice(TASKS[task]),
                trigger=f'{{"cron":"0 {moment.hour} * * *","tz":"UTC"}}',
                payload=self.call(),
                next_at=moment,
                following_at=moment + 24 * HOUR,
            )
        self.desk.pause(
            self._spice("reports.nightly"),
            author=self._spice("grace"),
            note=self._spice("moves to the new warehouse"),
        )

    def _now(self) -> None:
        self._to(6 * MINUTE)
        again = self._take("media.thumbnails", 3)
        assert again.job_id == self.shown.retried
        self._to(4 * MINUTE)
        for worker, (task, fraction) in enumerate(
            (("search.reindex", 0.62), ("reports.render", 0.08), ("mail.digest", None)), 1
        ):
            self.shown.running = self._put(task)
            claim = self._take(task, worker)
            if fraction is not None:
                note = ProgressNote(
                    job_id=claim.job_id,
                    worker_id=claim.worker_id,
                    fence=claim.fence,
                    fraction=fraction,
                    note=self._spice("412 of 664 shards"),
                )
                self.desk.run(self.desk.store.runs.note_progress([note], at=self.desk.clock.stamp()))
            self.desk.advance(20 * SECOND)
        self._to(90 * SECOND)
        for _ in range(7):
            self.shown.ready = self._put("mail.digest")
        for hours in range(1, 5):
            self.shown.delayed = self._put("reports.render", delay=hours * HOUR)

    def _limits(self) -> None:
        limit_key = LimitKey(name=self._spice("crm-api"), key=self._spice("acme"), concurrency=2)
        rate = LimitKey(name=self._spice("mail"), rate=100, period=MINUTE, burst=10)
        for _ in range(5):
            self.shown.limited = self._put("crm.sync", limit_keys=(limit_key,))
        self._put("mail.digest", limit_keys=(rate,))
        self.desk.admit_all()

    def _odds_and_ends(self) -> None:
        self.desk.pause_queue(
            self._spice("media"), author=self._spice("grace"), note=self._spice("the image service moves")
        )
        self._to(30 * SECOND)
        self.desk.join(
            0xDEAD,
            name=self._spice("batch-2"),
            queues=(self._spice("media"),),
            tasks=(self._spice("media.thumbnails"),),
            version="0.4.2",
            lease=SECOND,
        )
        lease = self.desk.store.leases.acquire(
            self._spice("sync-crm"),
            holder_id=7,
            holder=self._spice("batch-1:4120"),
            ttl=HOUR,
            at=self.desk.clock.stamp(),
        )
        self.desk.run(lease)

    def _statistics(self) -> None:
        """Three hours of a fleet that had a bad quarter of an hour."""
        for minute in range(180):
            at = self._end - (180 - minute) * MINUTE
            bad = 120 <= minute < 135
            counts, waits, tooks = [0] * PLACES, [0] * BUCKETS, [0] * BUCKETS
            counts[Counted.SUCCEEDED] = (
                0 if minute % 41 == 7 else 34 + minute * 7919 % 13 + (minute * minute) % 9 - 14 * bad
            )
            counts[Counted.FAILED] = 9 + minute % 4 if bad else int(minute % 17 == 0)
            counts[Counted.DIED] = 2 if bad else int(minute % 60 == 30)
            waits[3 + minute % 2], waits[4], waits[7 if bad else 5] = 20, 15, 4
            tooks[9], tooks[11] = 30, 8
            tally = Tally(
                task=self._spice("mail.digest"),
                queue=self._spice("mail"),
                counts=tuple(counts),
                waits=tuple(waits),
                tooks=tuple(tooks),
            )
            self.desk.run(self.desk.store.stats.add([tally], at=at))


def plain(text: str) -> str:
    """Nothing added."""
    return text


def nasty(text: str) -> str:
    """With markup that must stay text."""
    return f"{text}{NASTY}"
