"""Schedules with a past and workflows in every state, for tests of pages and for the pictures in the docs.

Two nights before the clocks of Europe change, by a clock that stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mainspring.admin.order import Recorder
from mainspring.errors import AnswerLost, NotFound
from mainspring.model.access import AccessRole, Actor
from mainspring.model.job import Failure
from mainspring.model.process import Role
from mainspring.model.run import Reason, Verdict
from mainspring.model.schedule import NewSchedule, Overlap, Reprocess
from mainspring.model.workflow import Constant, NodeKind, When
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store.store import Store
from mainspring.tasks.payload import encode
from mainspring.telemetry.events import Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every
from mainspring.triggers.trigger import Trigger
from tests.support.desk import DAY, HOUR, MINUTE, SECOND, Desk
from tests.support.flows import WORKER, Story, definition
from tests.support.management import admin_of

NOW = datetime(2026, 3, 27, 9, 20, tzinfo=UTC)
START = datetime(2026, 3, 25, 8, tzinfo=UTC)
TENANTS = 24
_BOOM = "the warehouse did not answer in 30s"


@dataclass
class Shown:
    """What tests want to find again."""

    hourly: str = ""
    berlin: str = ""
    paused: str = ""
    running: Story = field(default=None)  # type: ignore[assignment]
    failed: Story = field(default=None)  # type: ignore[assignment]
    succeeded: Story = field(default=None)  # type: ignore[assignment]


class Timetable:
    """Fills a store, from two days before NOW until then."""

    def __init__(
        self, store: Store, clock: ManualClock, run: Callable[[Any], Any], spice: Callable[[str], str]
    ) -> None:
        self.desk, self._spice = Desk(store, clock, run), spice
        self.shown = Shown()

    def fill(self) -> Shown:
        """All of it; the clock stands at NOW afterwards."""
        clock = self.desk.clock
        clock.move_to(START)
        self._fleet()
        self._schedules()
        self._pass_by()
        self._workflows()
        self.acts()
        clock.move_to(NOW)
        return self.shown

    def added(self, name: str) -> str:
        """One more schedule, that fires in a while."""
        return self._put(name, Cron("0 12 * * *", "UTC"))

    def next_hour(self) -> None:
        """The clock goes on to the next full hour, and schedulers do what is due."""
        clock = self.desk.clock
        clock.move_to(clock.now().replace(minute=0, second=0) + HOUR)
        self.tick()

    def tick(self) -> None:
        """What schedulers do at this moment."""
        scheduler = Scheduler(self.desk.store, self.desk.clock, Telemetry(), poll=SECOND, chunk=1000)
        for _ in range(6):
            self.desk.run(scheduler.tick())

    def acts(self) -> None:
        """Done, failed, refused, and one that nobody knows the end of."""
        acts = Recorder(self.desk.store.audit_log, self.desk.clock)
        grace = Actor(name=self._spice("grace"), role=AccessRole.OPERATOR, via="session")
        token = Actor(name=self._spice("deploy"), role=AccessRole.VIEWER, via="token", token_id=7)
        target = self._spice("reports.nightly")

        async def orders() -> None:
            note = {"note": self._spice("moves"), "password": "sk-very-secret"}
            async with acts.recorded(
                grace, "schedules.pause", object=target, details=note, address="10.0.0.7"
            ):
                pass
            await acts.refused(token, "dead.purge", object=self._spice("41"))
            with suppress(NotFound):
                async with acts.recorded(grace, "jobs.cancel", object=self._spice("8812")):
                    raise NotFound("job", 8812)
            with suppress(AnswerLost):
                async with acts.recorded(grace, "dead.replay", object=self._spice("billing")):
                    raise AnswerLost("the server went away")

        self.desk.run(orders())

    def _fleet(self) -> None:
        self.desk.join(
            WORKER,
            name=self._spice("batch-1"),
            queues=("default",),
            tasks=("t", "hourly", self._spice("crm.sync")),
            lease=9 * DAY,
        )
        self.desk.join(0x5CED, role=Role.SCHEDULER, name=self._spice("web-1"), lease=9 * DAY)

    def _late(self, name: str) -> None:
        """One that nobody fires: no scheduler can read its trigger, which a newer version wrote."""
        self.desk.schedule(
            self._spice(name),
            task=self._spice("legacy.export"),
            trigger='{"moon":"full"}',
            next_at=NOW - 5 * HOUR,
            following_at=NOW + 19 * HOUR,
        )

    def _put(
        self,
        name: str,
        trigger: Trigger,
        *,
        author: str | None = None,
        note: str | None = None,
        **fields: Any,
    ) -> str:
        first = trigger.next_after(self.desk.now)
        assert first is not None
        given = {"tenant": 4711, "note": self._spice("as agreed"), "api_key": "sk-very-secret"}
        new = NewSchedule(
            name=self._spice(name),
            trigger=trigger.encode(),
            payload=encode([], given, field="t"),
            next_at=first,
            following_at=trigger.next_after(first),
            **{"task": self._spice("crm.sync"), **fields},
        )
        self.desk.schedule_all(new, author=author, note=note)
        return new.name

    def _schedules(self) -> None:
        self.shown.hourly = self._put("crm.every-hour", Every(HOUR), task="hourly", max_attempts=3)
        self.shown.berlin = self._put(
            "billing.close-day",
            Cron("30 2 * * *", "Europe/Berlin"),
            task=self._spice("billing.close"),
            overlap=Overlap.QUEUE_ONE,
        )
        self._put(
            "mail.morning",
            Cron("0 7 * * 1-5", "America/New_York"),
            task=self._spice("mail.digest"),
            jitter=5 * MINUTE,
        )
        self._put("search.reindex", Cron("*/20 6-20 * * *", "UTC"), task=self._spice("search.reindex"))
        self.shown.paused = self._put(
            "reports.nightly", Cron("15 1 * * *", "Europe/Berlin"), task=self._spice("reports.render")
        )
        for number in range(TENANTS):
            self._put(
                f"tenants.sync-{number + 1:02}",
                Cron("0 */3 * * *", "Asia/Tokyo"),
                task=self._spice("tenants.sync"),
            )
        self.desk.pause(
            self.shown.paused, author=self._spice("grace"), note=self._spice("moves to the new warehouse")
        )
        edited = self._put(
            "search.reindex",
            Cron("*/30 6-20 * * *", "UTC"),
            author=self._spice("ada"),
            note=self._spice("less often"),
            task=self._spice("search.reindex"),
        )
        assert self.desk.the_schedule(edited).edited
        self._late("legacy.export")

    def _pass_by(self) -> None:
        """Hour by hour, with something of everything in the strip of one schedule."""
        self.desk.clock.move_to(NOW.replace(minute=0) - 2 * DAY)
        for hour in range(1, 49):
            if hour in (13, 14, 15):
                continue  # nobody was awake: slots are coalesced
            if hour == 24:
                self.desk.pause(self.shown.hourly, author=self._spice("grace"), note=self._spice("release"))
            if hour == 28:
                self.desk.resume(self.shown.hourly, author=self._spice("grace"))
            if hour == 34:
                self.desk.skip(1, self.shown.hourly, author=self._spice("ada"))
            self.desk.clock.move_to(NOW.replace(minute=0) - (48 - hour) * HOUR)
            self.tick()
            self._work(hour)
        self._backfill()

    def _work(self, hour: int) -> None:
        if hour == 40:
            return  # its job is not claimed: the next slot overlaps
        others = ("billing.close", "mail.digest", "search.reindex", "tenants.sync")
        for claim in self.desk.claim(WORKER, tasks=tuple(map(self._spice, others)), limit=100):
            self.desk.end(claim, Verdict.SUCCEEDED, took=SECOND)
        for claim in self.desk.claim(WORKER, tasks=("hourly",), limit=10):
            if hour == 48:
                return
            self.desk.advance(20 * SECOND)
            if hour in (7, 19, 44):
                failure = Failure(
                    type="TimeoutError", message=self._spice(_BOOM), traceback=self._spice(_BOOM)
                )
                self.desk.end(claim, Verdict.DEAD, failure=failure, reason=Reason.FAILED, took=20 * SECOND)
            else:
                self.desk.end(claim, Verdict.SUCCEEDED, took=20 * SECOND, result=b'{"rows":412}')

    def _backfill(self) -> None:
        backfills = admin_of(self.desk.store, self.desk.clock).backfills
        start = NOW.replace(minute=0) - 24 * HOUR
        end = start + 4 * HOUR
        plan = self.desk.run(
            backfills.aplan(self.shown.hourly, start=start, end=end, reprocess=Reprocess.NONE, max_active=1)
        )
        slots = [each.slot for each in plan.to_run]
        self.desk.backfill(
            *slots, schedule=self.shown.hourly, start=start, end=end, author=self._spice("ada"), max_active=1
        )
        self.desk.move_backfills()

    def _workflows(self) -> None:
        self.shown.succeeded = self._story("nightly-report", end=("extract", "shape", "publish", "announce"))
        self.shown.failed = self.failing()
        self.shown.running = self.importing()

    def failing(self) -> Story:
        """A workflow one of whose steps died."""
        story = self._story("nightly-report", end=("extract",), fail="shape")
        story.end("announce")
        story.end("alarm")
        return story

    def _story(self, name: str, end: tuple[str, ...], fail: str | None = None) -> Story:
        drawn = definition(
            self._spice(name),
            extract={},
            shape={"takes": ["extract"]},
            publish={"takes": ["shape"], "parents": ["extract"]},
            announce={"parents": ["publish"], "when": When.ALWAYS},
            alarm={"parents": ["shape"], "when": When.FAILURE},
        )
        story = Story(self.desk, drawn, {"day": self._spice("2026-03-26"), "password": "sk-very-secret"})
        for step in end:
            self.desk.advance(17 * SECOND)
            story.end(step, took=15 * SECOND, result=b'{"rows":412}')
        if fail:
            self.desk.advance(31 * SECOND)
            failure = Failure(
                type="KeyError", message=self._spice("'currency'"), traceback=self._spice("line 1\nline 2")
            )
            story.end(fail, Verdict.DEAD, failure=failure, reason=Reason.FAILED, took=30 * SECOND)
        return story

    def importing(self) -> Story:
        """A workflow in the midst of it."""
        shards = Constant(value=list(range(12)))
        drawn = definition(
            self._spice("import-catalogue"),
            fetch={},
            validate={"takes": ["fetch"]},
            index={"kind": NodeKind.MAP, "over": shards, "parents": ["validate"]},
            thumbnails={"parents": ["validate"], "max_attempts": 3},
            publish={"parents": ["index", "thumbnails"]},
            purge_cache={"parents": ["publish"]},
            rollback={"parents": ["publish"], "when": When.FAILURE},
        )
        story = Story(self.desk, drawn, {"shop": self._spice("berlin")})
        for step in ("fetch", "validate"):
            self.desk.advance(40 * SECOND)
            story.end(step, took=38 * SECOND, result=b'{"rows":412}')
        story.claimed()
        for item in range(5):
            self.desk.advance(9 * SECOND)
            story.end("index", item=item, took=8 * SECOND, result=b"1")
        return story
