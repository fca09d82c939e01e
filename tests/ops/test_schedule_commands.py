"""Orders about schedules, and what their versions tell afterwards."""

from __future__ import annotations

import pytest

from mainspring.errors import NotFound
from mainspring.ops.queries import Queries
from mainspring.ops.schedules.orders import ScheduleCommands, ScheduleEffect
from mainspring.ops.schedules.versions import step_in_words, step_view, steps
from mainspring.trigger.interval import Every
from tests.support.desk import HOUR, MINUTE, Desk


@pytest.fixture
def orders(desk: Desk) -> ScheduleCommands:
    return ScheduleCommands(desk.store, desk.clock)


def test_a_pause_says_what_it_changed_and_what_was_already_so(desk: Desk, orders: ScheduleCommands) -> None:
    desk.schedule("a")
    desk.schedule("b")
    desk.pause("b", author="bob")

    done = desk.run(orders.pause(["a", "b", "a"], author="ann", note="db move"))

    assert [(each.name, each.effect, each.why) for each in done] == [
        ("a", ScheduleEffect.PAUSED, ""),
        ("b", ScheduleEffect.NONE, "is paused already, by bob"),
    ]
    assert (desk.the_schedule("a").pause_note, desk.the_schedule("b").paused_by) == ("db move", "bob")


def test_a_resume_leaves_alone_what_is_not_paused(desk: Desk, orders: ScheduleCommands) -> None:
    desk.schedule("a")
    desk.schedule("b")
    desk.pause("a")

    done = desk.run(orders.resume(["a", "b"], author="ann"))

    assert [(each.effect, each.why) for each in done] == [
        (ScheduleEffect.RESUMED, ""),
        (ScheduleEffect.NONE, "is not paused"),
    ]


def test_an_unknown_name_stops_an_order_before_it_does_anything(desk: Desk, orders: ScheduleCommands) -> None:
    desk.schedule("a")

    for order in (
        orders.pause(["a", "nosuch"], author="ann"),
        orders.resume(["a", "nosuch"], author="ann"),
        orders.delete(["a", "nosuch"], author="ann"),
        orders.trigger("nosuch"),
        orders.skip("nosuch", 1, author="ann"),
    ):
        with pytest.raises(NotFound, match="nosuch"):
            desk.run(order)

    assert desk.the_schedule("a").paused_at is None


def test_a_triggered_schedule_answers_its_job(desk: Desk, orders: ScheduleCommands) -> None:
    desk.schedule("a", task="t")

    done = desk.run(orders.trigger("a"))

    assert (done.task, desk.job(done.job_id).task) == ("t", "t")


def test_skips_add_up(desk: Desk, orders: ScheduleCommands) -> None:
    desk.schedule("a")

    desk.run(orders.skip("a", 2, author="ann"))
    done = desk.run(orders.skip("a", 1, author="ann"))

    assert (done.added, done.skips) == (1, 3)


def test_the_versions_tell_what_changed_in_words(
    desk: Desk, orders: ScheduleCommands, queries: Queries
) -> None:
    desk.schedule("a", trigger=Every(MINUTE).encode())
    desk.edit("a", trigger=Every(HOUR).encode(), priority=3)
    desk.run(orders.pause(["a"], author="bob", note="db move"))
    desk.run(orders.delete(["a"], author="bob"))

    found = steps(desk.run(queries.versions("a")))

    assert [step_in_words(each) for each in found] == [
        "created",
        "changed: trigger every 1m -> every 1h, priority 0 -> 3",
        "paused",
        "deleted",
    ]
    assert step_view(found[2])["note"] == "db move"
    with pytest.raises(NotFound):
        desk.run(queries.versions("nosuch"))
