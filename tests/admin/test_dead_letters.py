"""Many dead letters at once: put back at a rate, and edited; and what keeps a ready job waiting."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from mainspring.admin import dead_letters
from mainspring.admin.admin import Admin
from mainspring.admin.dead_letters import Arguments, ReplayedPage
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.dead_letter import DeadFilter, DeadJob
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.support.desk import SECOND, Desk, settlement
from tests.support.management import admin_of


def replayed(
    desk: Desk, which: DeadFilter | None = None, page: int = 500, **options: Any
) -> list[tuple[int, ...]]:
    """What each page put back; together they are the answer."""
    pages: list[ReplayedPage] = []
    letters = admin_of(desk.store, desk.clock).dead_letters
    done = desk.run(letters.areplay_all(which or DeadFilter(), page=page, on_page=pages.append, **options))
    found = [each.job_ids for each in pages]
    assert done.job_ids == tuple(job_id for each in found for job_id in each)
    return found


def test_letters_go_back_newest_first_in_pages(desk: Desk) -> None:
    first, second, third = desk.bury(), desk.bury(), desk.bury()

    assert [sorted(page) for page in replayed(desk, page=2)] == [[second, third], [first]]
    assert desk.dead() == []


def test_a_letter_that_dies_again_meanwhile_is_left_alone(desk: Desk) -> None:
    old, young = desk.bury(task="old"), desk.bury()

    replay = desk.store.dead_letters.replay

    async def dies_again() -> None:
        await replay([old], at=desk.clock.stamp())
        [claim] = await desk.store.queue.claim(
            1, queues=["default"], tasks=["old"], limit=1, at=desk.clock.stamp()
        )
        await desk.store.queue.settle([settlement(claim, Verdict.DEAD)], at=desk.clock.stamp())

    async def then_dies_again(ids: list[int], **how: Any) -> list[int]:
        back: list[int] = await replay(ids, **how)
        desk.clock.advance(SECOND)
        await dies_again()
        return back

    desk.store.dead_letters.replay = then_dies_again  # type: ignore[method-assign]

    assert replayed(desk, page=1) == [(young,)]
    assert [dead.id for dead in desk.dead()] == [old]


def test_a_rate_makes_small_pages_with_a_rest_between(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[timedelta] = []

    async def rest(length: timedelta) -> None:
        rests.append(length)
        desk.clock.advance(length)

    monkeypatch.setattr(dead_letters, "pause", rest)
    for _ in range(5):
        desk.bury()

    assert [len(page) for page in replayed(desk, per_second=2.0)] == [2, 2, 1]
    assert rests == [SECOND, SECOND, SECOND / 2]


def test_a_slow_rate_puts_back_one_at_a_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[timedelta] = []

    async def rest(length: timedelta) -> None:
        rests.append(length)

    monkeypatch.setattr(dead_letters, "pause", rest)
    desk.bury()
    desk.bury()

    assert [len(page) for page in replayed(desk, per_second=0.1)] == [1, 1]
    assert rests == [10 * SECOND] * 2


def test_it_goes_on_below_the_last_id_that_was_done(desk: Desk) -> None:
    first, second, third = desk.bury(), desk.bury(), desk.bury()

    assert replayed(desk, DeadFilter(before=third)) == [(second, first)]


def test_what_is_to_be_done_is_counted(desk: Desk, admin: Admin) -> None:
    desk.bury(task="t")
    desk.bury(task="u")

    assert desk.run(admin.dead_letters.acount(DeadFilter(task="u"), most=10)) == 1
    assert desk.run(admin.dead_letters.acount(most=1)) == 1


def to(*args: object, **kwargs: object) -> Any:
    return lambda letter, had: (list(args), kwargs)


def test_an_edit_answers_the_letter_as_it_is_then(desk: Desk, admin: Admin) -> None:
    job_id = desk.bury(payload=b'{"args":[1]}')

    letter, changed = desk.run(admin.dead_letters.aedit(job_id, to(2, to="ada")))

    assert (letter.id, letter.payload, changed) == (job_id, b'{"args":[2],"kwargs":{"to":"ada"}}', True)
    edit = desk.runs(job_id)[-1]
    assert edit.failure is not None
    assert (edit.verdict, edit.payload) == (Verdict.EDITED, b'{"args":[1]}')
    assert edit.failure.message == "its arguments were edited by ann"


def test_an_edit_that_changes_nothing_leaves_no_trace(desk: Desk, admin: Admin) -> None:
    job_id = desk.bury(payload=b'{"args":[1]}')

    assert desk.run(admin.dead_letters.aedit(job_id, to(1)))[1] is False
    assert [run.verdict for run in desk.runs(job_id)] == [Verdict.DEAD]


def test_an_edit_is_made_to_what_somebody_else_left(desk: Desk, admin: Admin) -> None:
    job_id = desk.bury(payload=b'{"kwargs":{"a":1,"b":1}}')
    sought: list[DeadJob] = []

    def change(letter: DeadJob, had: Arguments) -> Arguments:
        sought.append(letter)
        return had[0], {**had[1], "b": 3}

    real = desk.store.dead_letters.edit

    async def beaten(job_id: int, **edit: Any) -> bool:
        if len(sought) == 1:
            theirs = msgspec.json.encode({"kwargs": {"a": 2, "b": 1}})
            await real(job_id, **{**edit, "payload": theirs})
        return await real(job_id, **edit)

    desk.store.dead_letters.edit = beaten  # type: ignore[method-assign]
    letter, _ = desk.run(admin.dead_letters.aedit(job_id, change))

    assert msgspec.json.decode(letter.payload) == {"kwargs": {"a": 2, "b": 3}}


def test_an_edit_of_no_dead_letter_says_so(desk: Desk, admin: Admin) -> None:
    live = desk.put()

    for job_id in (live, 987_654):
        with pytest.raises(NotFound):
            desk.run(admin.dead_letters.aedit(job_id, to(1)))


def test_arguments_that_are_no_json_are_refused(desk: Desk, admin: Admin) -> None:
    job_id = desk.bury()

    with pytest.raises(InvalidArgument):
        desk.run(admin.dead_letters.aedit(job_id, to(object())))
    assert desk.dead()[0].payload == b"{}"


def test_ready_jobs_that_no_worker_will_take_have_a_hint(desk: Desk, admin: Admin) -> None:
    desk.join(1, queues=("default",), tasks=("t",))
    fine, stranger, stray = desk.put(), desk.put(task="new"), desk.put(queue="attic")
    later = desk.put(task="new", delay=SECOND)
    jobs = [desk.job(job_id) for job_id in (fine, stranger, stray, later)]

    assert desk.run(admin.jobs.ahints(jobs)) == {
        stranger: "no live worker of its queue knows task new",
        stray: "no live worker serves queue attic",
    }
    assert [job.state for job in jobs] == [JobState.READY] * 3 + [JobState.DELAYED]
