"""Alerts through passes of several processes: told once, whoever dies, and when all is well again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.alerts.alerter import Alerter, Pinger
from mainspring.alerts.notification_sender import into_log
from mainspring.config import AlertsConfig
from mainspring.entropy import SeededEntropy
from mainspring.errors import StoreUnavailable, TargetUnavailable
from mainspring.model.alert import Message, NoteState
from mainspring.model.job import NewJob
from mainspring.model.process import Role
from mainspring.model.run import Verdict
from mainspring.model.stats import BUCKETS, PLACES, Counted, Tally
from mainspring.store.around import around
from mainspring.store.opener import open_store
from mainspring.targets.notify import LogNotifier, Notifier
from mainspring.telemetry.events import AlertTold, AlertUndelivered, PingFailed, Telemetry
from mainspring.telemetry.log import log_event
from mainspring.testing.clock import ManualClock
from tests.support.desk import HOUR, MINUTE, SECOND, Desk, settlement

CONFIG = AlertsConfig(recover_after=timedelta(), storm=3)


class Death(BaseException):
    """The process ends, and says nothing of it to anybody."""


class Hook:
    """A target that notes what it gets, and does what a test tells it."""

    def __init__(self, key: str = "hook") -> None:
        self.key, self.shown = key, f"https://{key}/***"
        self.got: list[Message] = []
        self.broken: str | None = None
        self.dies = False

    async def send(self, message: Message) -> None:
        if self.broken is not None:
            raise TargetUnavailable(self.broken)
        self.got.append(message)
        if self.dies:
            raise Death

    def told(self) -> list[tuple[str, str]]:
        return [(part.kind.value, part.key) for message in self.got for part in message.parts]


class Distant:
    """A store that may not answer."""

    def __init__(self, store: Any) -> None:
        self._store = around(store, self._call)
        self.gone = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def _call(self, name: str, method: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self.gone:
            raise StoreUnavailable("nobody there")
        return await method(*args, **named)


class Yard:
    """Processes with an alerter each, on one store."""

    def __init__(self, desk: Desk, clock: ManualClock, run: Callable[[Any], Any]) -> None:
        self.desk, self.clock, self.run = desk, clock, run
        self.hook = Hook()
        self.events: list[Any] = []
        self._seed = 0

    def alerter(self, config: AlertsConfig = CONFIG, *to: Notifier, **fields: Any) -> Alerter:
        self._seed += 1
        given: dict[str, Any] = {"who": f"p{self._seed}", "keep": 24 * HOUR, "pinger": None}
        given |= {"clock": self.clock, "entropy": SeededEntropy(self._seed)}
        given["telemetry"] = Telemetry(self.events.append)
        store = fields.pop("store", self.desk.store)
        return Alerter(store, config, to or [self.hook], **given | fields)

    def ticks(self, *alerters: Alerter, times: int = 1, every: timedelta = 5 * SECOND) -> None:
        for _ in range(times):
            for alerter in alerters:
                self.run(alerter.tick())
            self.clock.advance(every)


@pytest.fixture
def backend() -> str:
    return "sqlite"  # that both stores keep the contract is said elsewhere


@pytest.fixture
def yard(store: Any, clock: ManualClock, run: Callable[[Any], Any]) -> Yard:
    return Yard(Desk(store, clock, run), clock, run)


def test_of_three_processes_one_tells_and_each_note_once(yard: Yard) -> None:
    three = [yard.alerter() for _ in range(3)]
    job = yard.desk.bury()

    yard.ticks(*three, times=3)
    assert yard.hook.told() == [("opened", "failed:t")]

    yard.desk.replay(job)
    yard.desk.cancel(job)
    yard.ticks(*three, times=3)
    assert yard.hook.told() == [("opened", "failed:t"), ("recovered", "failed:t")]
    assert yard.hook.got[0].id.split(".")[0] == yard.hook.got[1].id.split(".")[0]


def test_another_takes_over_when_the_one_on_duty_is_gone(yard: Yard) -> None:
    first, second = yard.alerter(), yard.alerter()
    yard.ticks(first, second)
    yard.desk.bury()

    yard.ticks(second, times=1)
    assert yard.hook.got == []
    yard.ticks(second, times=5)
    assert yard.hook.told() == [("opened", "failed:t")]


def test_who_dies_after_sending_is_followed_by_one_who_sends_the_same_again(yard: Yard) -> None:
    first, second = yard.alerter(), yard.alerter()
    yard.desk.bury()
    yard.hook.dies = True
    with pytest.raises(Death):
        yard.run(first.tick())
    yard.hook.dies = False

    yard.ticks(second, times=12)

    assert yard.hook.told() == [("opened", "failed:t")] * 2
    assert len({message.id for message in yard.hook.got}) == 1


def test_a_restart_tells_nothing_again(yard: Yard) -> None:
    yard.desk.bury()
    yard.ticks(yard.alerter(), times=2)
    yard.clock.advance(MINUTE)

    yard.ticks(yard.alerter(), times=2)

    assert yard.hook.told() == [("opened", "failed:t")]


def test_a_target_that_fails_is_tried_again_and_the_others_do_not_wait(yard: Yard) -> None:
    good, bad = Hook("good"), Hook("bad")
    bad.broken = "down"
    alerter = yard.alerter(replace(CONFIG, attempts=3), good, bad)
    yard.desk.bury()

    yard.ticks(alerter, times=2)
    assert (good.told(), bad.got) == ([("opened", "failed:t")], [])
    assert yard.events == [
        AlertUndelivered(target="https://bad/***", reason="down", again_in=10 * SECOND),
    ]
    bad.broken = None
    yard.ticks(alerter, times=2)
    assert bad.told() == [("opened", "failed:t")]


def test_a_target_that_never_answers_is_given_up(yard: Yard) -> None:
    yard.hook.broken = "down"
    alerter = yard.alerter(replace(CONFIG, attempts=3))
    yard.desk.bury()

    yard.ticks(alerter, times=20)

    assert [each.again_in for each in yard.events] == [10 * SECOND, 20 * SECOND, None]
    [note] = yard.run(yard.desk.store.alerts.undelivered_notes(limit=10))
    assert (note.state, note.problem, note.tries) == (NoteState.FAILED, "down", 3)


def test_a_storm_is_one_message(yard: Yard) -> None:
    yard.desk.join(1, lease=HOUR)
    for task in "abcd":
        yard.desk.bury(task=task)

    yard.ticks(yard.alerter())

    [message] = yard.hook.got
    assert {part.subject for part in message.parts} == set("abcd")
    assert message.id.endswith("+3")


def test_what_opens_in_quiet_hours_comes_after_them_in_one_message(yard: Yard) -> None:
    # The night on which the clocks go forward: it ends at 05:00 UTC and not at 06:00.
    yard.clock.move_to(datetime(2030, 3, 30, 23, tzinfo=UTC))
    alerter = yard.alerter(replace(CONFIG, quiet="22:00-07:00", quiet_zone="Europe/Berlin"))
    yard.desk.join(1, lease=24 * HOUR)
    job = yard.desk.bury(task="a")
    yard.desk.bury(task="b")
    yard.ticks(alerter, times=2)
    yard.desk.purge(job)
    yard.ticks(alerter, times=2)
    assert yard.hook.got == []

    yard.desk.put("nobody")  # critical, once it has waited for a minute
    yard.ticks(alerter, times=14)
    assert yard.hook.told() == [("opened", "no_worker:default")]
    yard.clock.move_to(datetime(2030, 3, 31, 4, 59, tzinfo=UTC))
    yard.ticks(alerter)
    assert len(yard.hook.got) == 1
    yard.clock.move_to(datetime(2030, 3, 31, 5, tzinfo=UTC))
    yard.ticks(alerter)

    held = [(part.kind, part.key) for part in yard.hook.got[1].parts]
    assert ("opened", "failed:a") in held
    assert ("recovered", "failed:a") in held
    assert ("opened", "failed:b") in held


def test_it_is_said_again_only_where_somebody_asks_for_it(yard: Yard) -> None:
    alerter = yard.alerter(replace(CONFIG, repeat=10 * MINUTE, failed_window=24 * HOUR))
    yard.desk.bury()
    yard.ticks(alerter, times=6, every=5 * MINUTE)
    assert [kind for kind, _ in yard.hook.told()] == ["opened", "repeated", "repeated"]

    [alert] = yard.run(yard.desk.store.alerts.standing())
    yard.run(yard.desk.store.alerts.acknowledge(alert.id, author="ann", at=yard.clock.stamp()))
    yard.ticks(alerter, times=6, every=5 * MINUTE)
    assert len(yard.hook.got) == 3


def test_without_a_store_each_process_tells_of_it_and_of_its_return(yard: Yard) -> None:
    distant = Distant(yard.desk.store)
    alerter = yard.alerter(store=distant)

    def fail(times: int) -> None:
        for _ in range(times):
            with pytest.raises(StoreUnavailable):
                yard.run(alerter.tick())
            yard.clock.advance(5 * SECOND)

    fail(6)
    assert yard.hook.got == []
    fail(3)
    [message] = yard.hook.got
    assert (message.parts[0].key, message.parts[0].severity) == ("store:p1", "critical")
    assert "nobody there" in message.parts[0].sentence

    distant.gone = False
    yard.ticks(alerter, times=3)
    assert yard.hook.told() == [("opened", "store:p1"), ("recovered", "store:p1")]


def test_a_store_that_comes_back_soon_is_no_news(yard: Yard) -> None:
    distant = Distant(yard.desk.store)
    alerter = yard.alerter(store=distant)
    with pytest.raises(StoreUnavailable):
        yard.run(alerter.tick())
    distant.gone = False
    yard.ticks(alerter, times=20)

    assert yard.hook.got == []


class Outside:
    """Where a ping goes."""

    shown = "https://ping/***"

    def __init__(self) -> None:
        self.pings = 0
        self.broken = False

    async def send(self, method: str, *, now: datetime) -> None:
        if self.broken:
            raise TargetUnavailable("no route")
        assert method == "GET"
        self.pings += 1


def test_the_outside_is_pinged_while_slots_are_decided(yard: Yard) -> None:
    outside: Any = Outside()
    pinger = Pinger(outside, MINUTE, yard.clock, Telemetry(yard.events.append))
    alerter = yard.alerter(pinger=pinger)
    yard.ticks(alerter, times=13)
    assert outside.pings == 2

    yard.desk.schedule("s")
    yard.ticks(alerter, times=12)
    assert outside.pings == 2
    assert yard.events[-1] == PingFailed(
        target="https://ping/***", reason="there are schedules, and no scheduler is alive"
    )
    yard.desk.delete("s")
    outside.broken = True
    yard.ticks(alerter, times=12)
    assert (outside.pings, yard.events[-1].reason) == (2, "no route")


def test_the_log_is_told_by_itself(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mainspring")
    telemetry = Telemetry(log_event, yard.events.append)
    alerter = yard.alerter(CONFIG, LogNotifier(into_log(telemetry)))
    job = yard.desk.bury()
    yard.ticks(alerter)
    yard.desk.purge(job)
    yard.ticks(alerter, times=2)

    assert [(type(each), each.kind) for each in yard.events] == [
        (AlertTold, "opened"),
        (AlertTold, "recovered"),
    ]
    levels = [(record.levelname, record.message.split(":")[0]) for record in caplog.records]
    assert levels == [("WARNING", "alert opened (warning)"), ("INFO", "alert recovered (warning)")]


def test_a_target_that_is_no_longer_set_is_told_nothing(yard: Yard) -> None:
    yard.hook.broken = "down"
    yard.desk.bury()
    yard.ticks(yard.alerter(), times=2)

    yard.clock.advance(MINUTE)
    yard.ticks(yard.alerter(CONFIG, Hook("other")), times=2)

    [note] = yard.run(yard.desk.store.alerts.undelivered_notes(limit=10))
    assert (note.state, note.problem) == (NoteState.FAILED, "it is no longer set")


def test_two_who_both_think_they_are_on_duty_send_each_note_once(
    yard: Yard, tmp_path: Any, clock: ManualClock, run: Callable[[Any], Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    stores = [open_store(url, clock=clock) for _ in range(2)]
    run(stores[0].migrate())
    desk = Desk(stores[0], clock, run)
    alerters = [yard.alerter(store=each) for each in stores]
    for each in alerters:

        async def always() -> bool:
            return True

        each._hold = always  # type: ignore[method-assign]
    desk.bury()

    async def both() -> None:
        await asyncio.gather(*(each.tick() for each in alerters))

    for _ in range(3):
        run(both())
        clock.advance(5 * SECOND)
    assert yard.hook.told() == [("opened", "failed:t")]
    for each in stores:
        run(each.close())


# Many of one hide no other.


def test_a_flood_of_dead_letters_of_one_task_closes_no_alert_of_another(yard: Yard) -> None:
    alerter = yard.alerter(replace(CONFIG, off=("dead_growth",)))
    yard.desk.join(1, lease=HOUR)
    yard.desk.bury(task="quiet")
    yard.ticks(alerter)
    yard.desk.put_all(*[NewJob(task="loud", payload=b"{}") for _ in range(300)])
    claims = yard.desk.claim(1, tasks=("loud",), limit=300)
    yard.clock.advance(SECOND)
    assert yard.desk.settle(*[settlement(each, Verdict.DEAD) for each in claims]) == []

    yard.ticks(alerter, times=12)
    assert yard.hook.told() == [("opened", "failed:quiet"), ("opened", "failed:loud")]
    assert "300 jobs of task loud became dead letters" in yard.hook.got[1].parts[0].sentence


# A start is no outage; an outage that is over is told once.


def live(yard: Yard, *, scheduler: bool = True, lease: timedelta = HOUR) -> None:
    yard.desk.join(1, lease=lease)
    if scheduler:
        yard.desk.join(2, role=Role.SCHEDULER, lease=lease)


def far_schedule(yard: Yard) -> None:
    yard.desk.schedule("s", next_at=yard.desk.now + 1000 * HOUR)


def test_a_start_in_which_the_scheduler_comes_last_opens_nothing(yard: Yard) -> None:
    alerter = yard.alerter()
    far_schedule(yard)
    yard.desk.put("t")
    yard.ticks(alerter, times=11)
    live(yard)
    yard.desk.cancel(1)
    yard.ticks(alerter, times=20)

    assert yard.hook.told() == []


def test_what_was_seen_when_everything_stopped_opens_nothing_when_it_starts(yard: Yard) -> None:
    far_schedule(yard)
    live(yard)
    first = yard.alerter()
    yard.ticks(first, times=20)
    yard.desk.leave(2)
    yard.ticks(first, times=2)  # seen, and then nobody is left who looks
    yard.desk.leave(1)
    yard.clock.advance(HOUR)

    second = yard.alerter()
    yard.ticks(second)
    live(yard)
    yard.ticks(second, times=20)
    assert [key for _, key in yard.hook.told()] == ["outage:from 2030-01-01 00:01:45 UTC"]


def test_a_redeploy_within_a_minute_is_nothing_and_a_scheduler_that_does_not_come_is_told_of(
    yard: Yard,
) -> None:
    far_schedule(yard)
    live(yard)
    alerter = yard.alerter()
    yard.ticks(alerter, times=20)
    yard.desk.leave(2)
    yard.ticks(alerter, times=11)
    yard.desk.join(3, role=Role.SCHEDULER, lease=HOUR)
    yard.ticks(alerter, times=20)
    assert yard.hook.told() == []

    yard.desk.leave(3)
    yard.ticks(alerter, times=6)
    yard.ticks(yard.alerter(), times=12)  # another one takes over, and goes on from the record
    assert yard.hook.told() == [("opened", "no_scheduler:schedulers")]


def test_a_scheduler_that_falls_silent_is_told_of_within_half_a_minute(yard: Yard) -> None:
    far_schedule(yard)
    yard.desk.join(1, lease=HOUR)
    yard.desk.join(2, role=Role.SCHEDULER, lease=115 * SECOND)
    alerter = yard.alerter()
    yard.ticks(alerter, times=20)
    silent = yard.desk.now
    while ("opened", "no_scheduler:schedulers") not in yard.hook.told():
        yard.desk.reap()
        yard.ticks(alerter)
        assert yard.desk.now - silent <= 30 * SECOND + 5 * SECOND
    opened = next(each for each in yard.hook.got if each.parts[0].rule == "no_scheduler")
    assert silent + 15 * SECOND <= opened.parts[0].since <= silent + 20 * SECOND


def test_a_total_outage_is_told_when_it_is_over_once_with_its_length(yard: Yard) -> None:
    far_schedule(yard)
    live(yard, lease=100 * HOUR)
    yard.ticks(yard.alerter(), times=20)
    yard.clock.advance(3 * HOUR)

    yard.ticks(yard.alerter(), times=3)
    yard.ticks(yard.alerter(), times=30)
    yard.ticks(yard.alerter(), times=70, every=MINUTE)
    [message] = yard.hook.got
    assert message.parts[0].rule == "outage"
    assert message.parts[0].sentence.startswith(
        "nothing ran from 2030-01-01 00:01:35 UTC to 2030-01-01 03:01:40"
    )
    assert "(3h5s)" in message.parts[0].sentence
    assert yard.run(yard.desk.store.alerts.standing()) == [], "it is over, and nobody is told that it ends"


def test_a_task_that_fails_and_is_tried_again_is_told_of_long_before_its_job_dies(yard: Yard) -> None:
    counts = [0] * PLACES
    counts[Counted.FAILED] = 1
    failed = Tally(task="send", queue="q", counts=tuple(counts), waits=(0,) * BUCKETS, tooks=(0,) * BUCKETS)
    alerter = yard.alerter()
    began = yard.desk.now
    for seconds in (3, 6, 12, 24, 48, 96, 192, 384):
        yard.run(yard.desk.store.stats.add([failed], at=yard.clock.stamp()))
        yard.ticks(alerter, times=seconds // 3, every=3 * SECOND)
        assert yard.hook.got == [] or yard.desk.now - began > 10 * MINUTE

    assert yard.hook.told() == [("opened", "retrying:send")]
    assert "8 runs failed and 0 succeeded" in yard.hook.got[0].parts[0].sentence
