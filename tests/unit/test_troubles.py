"""Each rule: when it tells of something, when not yet, and when no longer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.config import AlertsConfig
from mainspring.model.alert import (
    Died,
    Dropped,
    Facts,
    LateJob,
    Lost,
    Outage,
    Overdue,
    Retrying,
    Rule,
    Severity,
    Streak,
    Trouble,
    Waiting,
)
from mainspring.model.process import ProcessInfo, Role
from mainspring.model.queue import QueuePause
from mainspring.rules.troubles import OTHERS, hindrance, troubles, watched

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
CONFIG = AlertsConfig()
PAUSE = QueuePause(queue="mail", paused_at=NOW - HOUR, paused_by="ann", note="the move")


def member(role: Role = Role.WORKER, **fields: Any) -> ProcessInfo:
    given = {
        "id": 1,
        "name": "host:1",
        "queues": ("mail",),
        "tasks": ("send",),
        "version": "1",
        "tzdata": "1",
    }
    given |= {"started_at": NOW - HOUR, "lease_until": NOW + MINUTE, "alive": True}
    return ProcessInfo(**given | {"role": role} | fields)


SCHEDULER, WORKER = member(Role.SCHEDULER), member()


def late(**fields: Any) -> LateJob:
    given = {"schedule": "nightly", "slot_at": NOW - HOUR, "job_id": 7, "queue": "mail", "due_at": NOW - HOUR}
    return LateJob(**given | {"claimed": False, "begun": False} | fields)


def waiting(age: timedelta = MINUTE, **fields: Any) -> Waiting:
    return Waiting(**{"queue": "mail", "task": "send", "job_id": 7, "due_at": NOW - age} | fields)


def dropped(schedule: str, **fields: Any) -> Dropped:
    given = {"since": NOW - 2 * HOUR, "until": NOW - HOUR, "dropped_at": NOW - MINUTE, "breaker": False}
    return Dropped(**{"schedule": schedule} | given | fields)


def died(age: timedelta, **fields: Any) -> Died:
    given = {"jobs": 1, "since": NOW - age, "job_id": 7, "task": "send", "died_at": NOW - age}
    return Died(**given | {"reason": "failed"} | fields)


def found(config: AlertsConfig = CONFIG, **facts: Any) -> list[Trouble]:
    return troubles(Facts(now=NOW, **facts), config)


def told(config: AlertsConfig = CONFIG, **facts: Any) -> list[tuple[Rule, str]]:
    return [(each.rule, each.subject) for each in found(config, **facts)]


FIRES = [
    ("missed", {"overdue": (Overdue(schedule="s", slot_at=NOW - MINUTE),)}, "s"),
    ("slots_dropped", {"dropped": (dropped("s"),)}, "s"),
    ("late_start", {"late": (late(expect_start_within=HOUR),)}, "nightly"),
    ("late_start", {"late": (late(due_at=NOW - 10 * MINUTE),)}, "nightly"),
    ("late_finish", {"late": (late(expect_finish_by=HOUR, claimed=True, begun=True),)}, "nightly"),
    ("failed", {"died": (died(HOUR - SECOND),)}, "send"),
    ("failing", {"streaks": (Streak(schedule="s", failures=3, since=NOW - HOUR),)}, "s"),
    (
        "retrying",
        {"retrying": (Retrying(task="send", failed=2, succeeded=0, since=NOW - 10 * MINUTE),)},
        "send",
    ),
    ("dead_growth", {"grown": 10, "died": (died(HOUR),)}, "dead letters"),
    ("oldest_waiting", {"waiting": (waiting(15 * MINUTE),), "processes": (WORKER,)}, "mail"),
    ("no_worker", {"waiting": (waiting(SECOND),)}, "mail"),
    ("no_worker", {"waiting": (waiting(task="other"),), "processes": (WORKER,)}, "mail"),
    ("no_worker", {"waiting": (waiting(),), "processes": (member(alive=False),)}, "mail"),
    ("no_scheduler", {"scheduled": True, "processes": (WORKER,)}, "schedulers"),
    ("scheduler_lag", {"behind_since": NOW - 30 * SECOND, "processes": (SCHEDULER,)}, "schedulers"),
    (
        "process_lost",
        {"lost": (Lost(name="host:1", role=Role.WORKER, lost_at=NOW - MINUTE),)},
        "worker host:1",
    ),
    ("clock_skew", {"processes": (member(skew=-5 * SECOND),)}, "worker host:1"),
    (
        "outage",
        {"scheduled": True, "processes": (SCHEDULER,), "gaps": (Outage(began_at=NOW - HOUR, ended_at=NOW),)},
        "from 2026-03-01 11:00:00 UTC",
    ),
]
JUST_NOT = [
    ("late_start", {"late": (late(expect_start_within=HOUR + SECOND, due_at=NOW),)}),
    ("late_start", {"late": (late(expect_start_within=MINUTE, begun=True, claimed=True),)}),
    ("late_start", {"late": (late(due_at=NOW - 10 * MINUTE + SECOND),)}),
    ("late_start", {"late": (late(due_at=None),)}),
    ("late_finish", {"late": (late(expect_finish_by=HOUR + SECOND, due_at=NOW),)}),
    ("failed", {"died": (died(HOUR),)}),
    ("failing", {"streaks": (Streak(schedule="s", failures=2, since=NOW - HOUR),)}),
    ("dead_growth", {"grown": 9}),
    (
        "retrying",
        {"retrying": (Retrying(task="t", failed=9, succeeded=0, since=NOW - 10 * MINUTE + SECOND),)},
    ),
    ("retrying", {"retrying": (Retrying(task="t", failed=1, succeeded=0, since=NOW - HOUR),)}),
    ("clock_skew", {"processes": (member(skew=5 * SECOND - SECOND / 10),)}),
    ("clock_skew", {"processes": (member(skew=HOUR, alive=False),)}),
    ("outage", {"gaps": (Outage(began_at=NOW - HOUR, ended_at=NOW),)}),
    ("oldest_waiting", {"waiting": (waiting(15 * MINUTE - SECOND),), "processes": (WORKER,)}),
    ("no_worker", {"waiting": (waiting(),), "processes": (WORKER,)}),
    ("no_worker", {"waiting": (waiting(),), "pauses": (PAUSE,)}),
    ("no_scheduler", {"scheduled": False}),
    ("no_scheduler", {"scheduled": True, "processes": (SCHEDULER,)}),
    ("scheduler_lag", {"behind_since": NOW - 29 * SECOND, "processes": (SCHEDULER,)}),
    ("scheduler_lag", {"behind_since": NOW - HOUR, "processes": (WORKER,)}),
    ("process_lost", {"lost": (Lost(name="host:1", role=Role.WORKER, lost_at=NOW - 10 * MINUTE),)}),
    (
        "process_lost",
        {"lost": (Lost(name="host:1", role=Role.WORKER, lost_at=NOW),), "processes": (WORKER,)},
    ),
]


@pytest.mark.parametrize(("rule", "facts", "subject"), FIRES, ids=lambda each: str(each)[:24])
def test_a_rule_tells_of_its_subject_unless_it_is_off(rule: str, facts: dict[str, Any], subject: str) -> None:
    assert (Rule(rule), subject) in told(**facts)
    assert Rule(rule) not in [each for each, _ in told(replace(CONFIG, off=(rule,)), **facts)]


@pytest.mark.parametrize(("rule", "facts"), JUST_NOT, ids=lambda each: str(each)[:24])
def test_a_rule_is_silent_just_before_and_just_after(rule: str, facts: dict[str, Any]) -> None:
    assert Rule(rule) not in [each for each, _ in told(**facts)]


def test_nothing_is_wrong_with_nothing() -> None:
    assert found() == []


def test_every_rule_but_the_stores_own_has_a_case() -> None:
    assert {rule for rule, _, _ in FIRES} == {each.value for each in Rule} - {"store"}


def test_a_schedule_that_says_how_soon_is_not_judged_by_the_default_too() -> None:
    own = late(expect_start_within=2 * HOUR, due_at=NOW - 20 * MINUTE)

    assert told(late=(own, late())) == []


def test_jobs_of_a_paused_queue_say_so_and_wake_nobody() -> None:
    both = found(late=(late(),), waiting=(waiting(HOUR),), pauses=(PAUSE,))

    assert [(each.rule, each.severity) for each in both] == [
        ("oldest_waiting", Severity.NOTICE),
        ("late_start", Severity.NOTICE),
    ]
    assert all("ann paused at 2026-03-01 11:00:00 UTC (the move)" in each.sentence for each in both)


def test_the_worst_comes_first_and_each_subject_once() -> None:
    facts = {"overdue": tuple(Overdue(schedule="s", slot_at=NOW - each * HOUR) for each in (2, 1))}
    facts["died"] = (died(MINUTE),)

    assert told(**facts) == [("missed", "s"), ("failed", "send")]


def test_what_often_passes_by_itself_is_held_back_for_a_while() -> None:
    [nobody] = found(waiting=(waiting(),))
    [silent] = found(scheduled=True)
    [missed] = found(overdue=(Overdue(schedule="s", slot_at=NOW - HOUR),))

    assert (nobody.hold, silent.hold, missed.hold) == (MINUTE, MINUTE, 10 * SECOND)
    assert all(each.after_start for each in (nobody, silent, missed))


def test_a_scheduler_that_fell_silent_is_missed_sooner_than_one_that_left() -> None:
    [fell, _] = found(
        scheduled=True, lost=(Lost(name="host:2", role=Role.SCHEDULER, lost_at=NOW - 5 * SECOND),)
    )

    assert (fell.rule, fell.hold, fell.recorded, fell.since) == (
        "no_scheduler",
        10 * SECOND,
        True,
        NOW - 5 * SECOND,
    )


def test_a_list_that_was_cut_says_so() -> None:
    both = found(died=(died(MINUTE), died(MINUTE, task="other")), cut=(Rule.FAILED,))

    others = both[-1] if both[-1].subject == OTHERS else both[0]
    assert (others.rule, others.subject) == (Rule.FAILED, OTHERS)
    assert "2 are named, and others may not be" in others.sentence
    assert told(replace(CONFIG, off=("failed",)), died=(died(MINUTE),), cut=(Rule.FAILED,)) == []


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({}, None),
        ({"scheduled": True, "processes": (SCHEDULER,)}, None),
        ({"scheduled": True, "processes": (WORKER,)}, "there are schedules, and no scheduler is alive"),
        ({"behind_since": NOW - MINUTE, "processes": ()}, None),
        (
            {"scheduled": True, "behind_since": NOW - MINUTE, "processes": (SCHEDULER,)},
            "schedulers are more than 30s behind",
        ),
    ],
)
def test_the_whole_makes_progress_as_long_as_slots_are_decided(
    facts: dict[str, Any], why: str | None
) -> None:
    assert hindrance(Facts(now=NOW, **facts), CONFIG) == why


def test_a_look_goes_as_far_back_as_the_rules_need() -> None:
    asked = watched(replace(CONFIG, missed_after=2 * MINUTE, failing_after=4))

    assert (asked.missed_after, asked.late_after, asked.lost_window) == (2 * MINUTE, 10 * MINUTE, 10 * MINUTE)
    assert asked.streak == 9


def test_dropped_slots_name_their_schedule_and_say_what_to_do() -> None:
    late, shed = found(dropped=(dropped("a"), dropped("b", breaker=True, since=NOW - HOUR)))

    assert late.sentence.startswith(
        "schedule a dropped missed slots from 2026-03-01 10:00:00 UTC to 2026-03-01 11:00:00 UTC: older than"
    )
    assert "`mainspring backfill a`" in late.sentence
    assert "its missed slot of 2026-03-01 11:00:00 UTC" in shed.sentence
    assert "`mainspring schedules go-on b`" in shed.sentence
    assert (late.severity, late.since) == (Severity.WARNING, NOW - MINUTE)
