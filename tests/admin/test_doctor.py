"""What the doctor finds, and how bad it is."""

from __future__ import annotations

from mainspring.admin.health.doctor import examine, unreachable
from mainspring.admin.health.finding import Check, Level
from mainspring.model.process import Role
from tests.support.desk import MINUTE, Desk


def found(desk: Desk, name: str) -> list[Check]:
    checks = desk.run(examine(desk.store, desk.clock))
    assert not unreachable(checks)
    return [each for each in checks if each.name == name]


def test_a_fresh_store_fails_nothing(desk: Desk) -> None:
    checks = desk.run(examine(desk.store, desk.clock))

    assert not [each for each in checks if each.level is Level.FAIL]
    assert {"python", "time zones", "database", "clock", "schema", "fleet", "queues"} <= {
        each.name for each in checks
    }


def test_ready_jobs_need_a_live_worker_of_their_queue(desk: Desk) -> None:
    desk.put(queue="mail")
    desk.join(1, queues=("web",), tasks=("t",))

    [check] = found(desk, "queues")

    assert check.level is Level.FAIL
    assert check.sentence == "t: 1 ready in queue mail, which no live worker serves"


def test_ready_jobs_need_a_live_worker_that_knows_their_task(desk: Desk) -> None:
    desk.put(queue="mail")
    desk.join(1, queues=("mail",), tasks=("other",))

    [check] = found(desk, "queues")

    assert check.sentence == "t: 1 ready in queue mail, where no live worker knows the task"


def test_a_worker_whose_lease_has_ended_serves_nothing(desk: Desk) -> None:
    desk.put()
    desk.join(1, queues=("default",), tasks=("t",))
    assert found(desk, "queues")[0].level is Level.OK

    desk.advance(MINUTE)

    assert found(desk, "queues")[0].level is Level.FAIL
    assert found(desk, "fleet")[0].level is Level.WARN


def test_schedules_need_a_live_scheduler(desk: Desk) -> None:
    desk.schedule("s")
    assert found(desk, "schedules")[0].level is Level.FAIL

    desk.join(1, role=Role.SCHEDULER)

    assert found(desk, "schedules")[0].level is Level.OK


def test_processes_that_differ_are_pointed_out(desk: Desk) -> None:
    desk.join(1, version="1", tzdata="2026a")
    desk.join(2, version="2", tzdata="2026b")

    sentences = [each.sentence for each in found(desk, "fleet")]

    assert sentences[0] == "live workers: 2, live schedulers: 0"
    assert sentences[1:] == [
        "live processes differ in mainspring: 1, 2",
        "live processes differ in tz data: 2026a, 2026b",
    ]


def test_dead_letters_and_old_ready_jobs_are_warned_of(desk: Desk) -> None:
    desk.bury()
    desk.put()
    desk.advance(2 * MINUTE)

    assert found(desk, "dead letters")[0].level is Level.WARN
    [waiting] = found(desk, "waiting")
    assert (waiting.level, waiting.sentence) == (Level.WARN, "the oldest ready job has waited 120 s")
