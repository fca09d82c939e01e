"""Schedules written by hand: with a note, only over what was read, and given back to code."""

from __future__ import annotations

import asyncio

import pytest

from mainspring.errors import Outdated
from mainspring.model.schedule import Change
from mainspring.store.codes import CODE
from tests.support.desk import SECOND


def test_a_change_carries_its_note(desk):
    desk.schedule()
    desk.edit(payload=b"hand", author="ann", note="db move")

    assert [(each.author, each.note) for each in desk.versions()] == [(CODE, None), ("ann", "db move")]


# Two who edit at once.


def test_an_edit_of_what_was_read_is_written(desk):
    desk.schedule()

    assert desk.edit(payload=b"hand", expected={"s": desk.the_schedule()}) == ["s"]
    assert desk.the_schedule().payload == b"hand"


def test_the_second_of_two_editors_is_refused_and_writes_nothing(desk):
    desk.schedule()
    read = desk.the_schedule()
    desk.edit(payload=b"ann's", author="ann", expected={"s": read})

    with pytest.raises(Outdated, match="at version 1 when it was read, and is at version 2 now"):
        desk.edit(payload=b"bob's", author="bob", expected={"s": read})

    assert desk.the_schedule().payload == b"ann's"
    assert len(desk.versions()) == 2


@pytest.mark.parametrize("change", ["pause", "revert"])
def test_whatever_makes_a_version_outdates_what_was_read(desk, change):
    desk.edit()
    read = desk.the_schedule()
    getattr(desk, change)()

    with pytest.raises(Outdated):
        desk.edit(payload=b"hand", expected={"s": read})


def test_a_slot_that_fired_outdates_nothing(desk):
    desk.schedule(max_fires=5)
    read = desk.the_schedule()
    desk.advance(60 * SECOND)
    desk.fire_due()

    assert desk.edit(payload=b"hand", max_fires=5, expected={"s": read}) == ["s"]
    assert desk.the_schedule().fires_left == 4


def test_what_was_deleted_since_is_not_made_again(desk):
    desk.schedule()
    read = desk.the_schedule()
    desk.delete()

    with pytest.raises(Outdated, match="deleted since"):
        desk.edit(payload=b"hand", expected={"s": read})

    assert desk.schedules() == []


def test_one_made_anew_is_another_though_its_version_is_the_same(desk):
    desk.schedule()
    read = desk.the_schedule()
    desk.delete()
    desk.schedule()
    assert desk.the_schedule().version == read.version

    with pytest.raises(Outdated, match="made anew"):
        desk.edit(payload=b"hand", expected={"s": read})


def test_what_must_be_new_is_refused_where_there_is_one(desk):
    assert desk.edit(payload=b"first", expected={"s": None}) == ["s"]

    with pytest.raises(Outdated, match="there is one of that name by now"):
        desk.edit(payload=b"second", expected={"s": None})

    assert desk.the_schedule().payload == b"first"


def test_one_that_is_outdated_keeps_all_from_being_written(desk):
    desk.schedule("a")
    read = desk.the_schedule("a")
    desk.edit("a", payload=b"ann's")

    with pytest.raises(Outdated):
        desk.schedule_all(
            desk.new_schedule("a", payload=b"bob's"),
            desk.new_schedule("b"),
            author="bob",
            expected={"a": read, "b": None},
        )

    assert [each.name for each in desk.schedules()] == ["a"]


@pytest.mark.parametrize("there", [False, True])
def test_of_many_at_once_one_wins_and_the_others_are_told(desk, there):
    if there:
        desk.schedule()
    read = desk.the_schedule() if there else None
    news = [desk.new_schedule(payload=f"{n}".encode(), trigger=f"t{n}") for n in range(8)]

    async def all_at_once():
        puts = [
            desk.store.schedules.put([new], author="ann", expected={"s": read}, at=desk.clock.stamp())
            for new in news
        ]
        return await asyncio.gather(*puts, return_exceptions=True)

    said = desk.run(all_at_once())

    assert sorted(map(str, (each for each in said if isinstance(each, list)))) == ["['s']"]
    assert all(isinstance(each, Outdated) for each in said if not isinstance(each, list))
    [winner] = [new for new, each in zip(news, said, strict=True) if each == ["s"]]
    assert desk.the_schedule().payload == winner.payload
    assert len(desk.versions()) == (2 if there else 1)


# Given back to code.


def test_what_is_handed_back_is_as_it_was_until_code_speaks(desk):
    desk.schedule(payload=b"code")
    desk.edit(payload=b"hand")
    desk.advance(SECOND)

    assert desk.revert(author="bob", note="done") == ["s"]
    handed = desk.the_schedule()
    assert (handed.edited, handed.payload, handed.version) == (False, b"hand", 3)
    last = desk.versions()[-1]
    assert (last.change, last.author, last.note, last.changed_at) == (
        Change.REVERTED,
        "bob",
        "done",
        desk.now,
    )
    assert last.schedule == handed

    assert desk.schedule(payload=b"code") == ["s"]
    assert desk.the_schedule().payload == b"code"


def test_handing_back_answers_only_what_was_edited(desk):
    desk.schedule("codes")
    desk.edit("hands")

    assert desk.revert("codes", "hands", "nobody") == ["hands"]
    assert desk.revert("hands") == []
    assert len(desk.versions("codes")) == 1
