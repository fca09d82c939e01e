"""Orders about schedules, and what their versions tell afterwards."""

from __future__ import annotations

import pytest

from mainspring.admin.schedules.orders import ScheduleEffect, Schedules
from mainspring.admin.schedules.versions import VersionView, step_in_words, steps
from mainspring.errors import NotFound
from mainspring.triggers.intervals import Every
from tests.support.desk import HOUR, MINUTE, Desk
from tests.support.management import admin_of


@pytest.fixture
def orders(desk: Desk) -> Schedules:
    return admin_of(desk.store, desk.clock).schedules


def test_a_pause_says_what_it_changed_and_what_was_already_so(desk: Desk, orders: Schedules) -> None:
    desk.schedule("a")
    desk.schedule("b")
    desk.pause("b", author="bob")

    done = desk.run(orders.apause(["a", "b", "a"], note="db move"))

    assert [(each.name, each.effect, each.why) for each in done] == [
        ("a", ScheduleEffect.PAUSED, ""),
        ("b", ScheduleEffect.NONE, "is paused already, by bob"),
    ]
    assert (desk.the_schedule("a").pause_note, desk.the_schedule("b").paused_by) == ("db move", "bob")


def test_a_resume_leaves_alone_what_is_not_paused(desk: Desk, orders: Schedules) -> None:
    desk.schedule("a")
    desk.schedule("b")
    desk.pause("a")

    done = desk.run(orders.aresume(["a", "b"]))

    assert [(each.effect, each.why) for each in done] == [
        (ScheduleEffect.RESUMED, ""),
        (ScheduleEffect.NONE, "is not paused"),
    ]


def test_an_unknown_name_stops_an_order_before_it_does_anything(desk: Desk, orders: Schedules) -> None:
    desk.schedule("a")

    for order in (
        orders.apause(["a", "nosuch"]),
        orders.aresume(["a", "nosuch"]),
        orders.adelete(["a", "nosuch"]),
        orders.atrigger("nosuch"),
        orders.askip("nosuch", 1),
    ):
        with pytest.raises(NotFound, match="nosuch"):
            desk.run(order)

    assert desk.the_schedule("a").paused_at is None


def test_a_triggered_schedule_answers_its_job(desk: Desk, orders: Schedules) -> None:
    desk.schedule("a", task="t")

    done = desk.run(orders.atrigger("a"))

    assert (done.task, desk.job(done.job_id).task) == ("t", "t")


def test_skips_add_up(desk: Desk, orders: Schedules) -> None:
    desk.schedule("a")

    desk.run(orders.askip("a", 2))
    done = desk.run(orders.askip("a", 1))

    assert (done.added, done.skips) == (1, 3)


def test_the_versions_tell_what_changed_in_words(desk: Desk, orders: Schedules) -> None:
    desk.schedule("a", trigger=Every(MINUTE).encode())
    desk.edit("a", trigger=Every(HOUR).encode(), priority=3)
    bob = admin_of(desk.store, desk.clock, actor="bob").schedules
    desk.run(bob.apause(["a"], note="db move"))
    desk.run(bob.adelete(["a"]))

    found = steps(desk.run(orders.aversions("a")))

    assert [step_in_words(each) for each in found] == [
        "created",
        "changed: trigger every 1m -> every 1h, priority 0 -> 3",
        "paused",
        "deleted",
    ]
    assert VersionView.of(found[2]).note == "db move"
    with pytest.raises(NotFound):
        desk.run(orders.aversions("nosuch"))
