"""The contract of schedule policies, but for overlap: pauses, skips, limits, misfires and versions."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.schedule import Change, Disposition, Drop, Misfire, Overlap, Skipped
from mainspring.store.codes import CODE
from tests.support.desk import DAY, HOUR, MINUTE, SECOND, Desk


def slot(desk: Desk, count: int = 1) -> None:
    """Let that many slots of a minutely schedule come and be fired, each on time."""
    for _ in range(count):
        desk.advance(MINUTE)
        desk.fire_due()


def reasons(desk: Desk, name: str = "s") -> list[Skipped | None]:
    """Why each slot made no job, oldest slot first; None where it made one."""
    return [slot.reason for slot in reversed(desk.slots(name))]


def live(desk: Desk) -> list[int]:
    return sorted(job.id for job in desk.jobs())


# Pauses.


def test_slots_of_a_paused_schedule_are_skipped_and_on_record(desk):
    desk.schedule()
    assert desk.pause(author="ann", note="moving house") == ["s"]
    slot(desk)

    [skipped] = desk.slots()
    assert (skipped.disposition, skipped.reason, skipped.job_id) == (
        Disposition.SKIPPED,
        Skipped.PAUSED,
        None,
    )
    assert desk.jobs() == []


def test_a_pause_is_on_record_with_its_author_and_note(desk):
    desk.schedule()
    desk.pause(author="ann", note="moving house")

    schedule = desk.the_schedule()
    assert (schedule.paused_at, schedule.paused_by, schedule.pause_note) == (desk.now, "ann", "moving house")
    version = desk.versions()[-1]
    assert (version.change, version.author, version.note) == (Change.PAUSED, "ann", "moving house")
    assert (version.version, version.changed_at) == (2, desk.now)


def test_pausing_twice_changes_nothing(desk):
    desk.schedule()
    desk.pause(author="ann")
    before = (desk.the_schedule(), desk.versions())
    desk.advance(SECOND)

    assert desk.pause(author="bob") == []
    assert (desk.the_schedule(), desk.versions()) == before


def test_a_resumed_schedule_fires_its_next_slot(desk):
    desk.schedule()
    desk.pause()
    slot(desk)
    desk.advance(SECOND)
    assert desk.resume(author="bob") == ["s"]
    desk.advance(MINUTE - SECOND)
    desk.fire_due()

    assert reasons(desk) == [Skipped.PAUSED, None]
    schedule = desk.the_schedule()
    assert (schedule.paused_at, schedule.paused_by, schedule.pause_note) == (None, None, None)
    version = desk.versions()[-1]
    assert (version.change, version.author, version.note) == (Change.RESUMED, "bob", None)


def test_a_slot_of_the_pause_is_not_caught_up_by_a_scheduler_that_comes_after_it(desk):
    desk.schedule(misfire=Misfire.ALL)
    desk.pause()
    desk.advance(MINUTE + SECOND)
    desk.resume()
    desk.fire_due()

    assert desk.jobs() == []
    assert reasons(desk) == [Skipped.PAUSED]


def test_a_slot_that_was_due_and_not_fired_is_skipped_by_the_pause(desk):
    desk.schedule(misfire=Misfire.ALL)
    desk.advance(MINUTE + SECOND)
    desk.pause()
    assert reasons(desk) == [Skipped.PAUSED]
    desk.advance(SECOND)
    desk.resume()
    desk.fire_due()

    assert reasons(desk) == [Skipped.PAUSED]
    assert desk.jobs() == []


def test_resuming_what_runs_changes_nothing(desk):
    desk.schedule()
    before = (desk.the_schedule(), desk.versions())

    assert desk.resume() == []
    assert (desk.the_schedule(), desk.versions()) == before


def test_a_request_to_skip_is_a_version_with_its_author(desk):
    desk.schedule()
    assert desk.skip(2, author="eve")
    assert not desk.skip(1, "nobody")

    version = desk.versions()[-1]
    assert (version.change, version.author, version.version) == (Change.SKIPPING, "eve", 2)
    assert version.schedule.skips == 2


def test_a_pause_names_several_and_answers_those_it_found_running(desk):
    for name in ("a", "b", "c"):
        desk.schedule(name)
    desk.pause("b")

    assert sorted(desk.pause("a", "b", "nobody")) == ["a"]
    assert desk.the_schedule("c").paused_at is None


def test_a_pause_outlives_a_change_of_arguments(desk):
    desk.schedule()
    desk.pause()
    desk.schedule(payload=b"other")
    slot(desk)

    assert reasons(desk) == [Skipped.PAUSED]


def test_a_pause_does_not_touch_the_jobs_there_are(desk):
    desk.schedule()
    slot(desk)
    before = desk.jobs()
    desk.pause()

    assert desk.jobs() == before


# Skips on request.


def test_the_next_slots_are_skipped_as_asked_and_no_more(desk):
    desk.schedule(overlap=Overlap.ALLOW, overlap_limit=9)
    assert desk.skip(2)
    slot(desk, 3)

    assert reasons(desk) == [Skipped.REQUESTED, Skipped.REQUESTED, None]
    assert desk.the_schedule().skips == 0


def test_requests_to_skip_add_up(desk):
    desk.schedule()
    desk.skip(1)
    desk.skip(2)

    assert desk.the_schedule().skips == 3


def test_a_slot_of_a_pause_uses_up_no_request(desk):
    desk.schedule()
    desk.skip(1)
    desk.pause()
    slot(desk)

    assert reasons(desk) == [Skipped.PAUSED]
    assert desk.the_schedule().skips == 1


def test_there_is_no_skipping_for_a_schedule_that_is_not_there(desk):
    assert desk.skip(1, "nobody") is False


# Triggering.


def test_a_triggered_schedule_makes_a_job_now(desk):
    desk.schedule("nightly", task="report", payload=b"args", queue="reports", priority=4, max_attempts=3)
    job_id = desk.trigger("nightly")

    job = desk.job(job_id)
    assert (job.task, job.payload, job.queue, job.priority, job.max_attempts) == (
        "report",
        b"args",
        "reports",
        4,
        3,
    )
    assert (job.run_at, job.enqueued_at, job.slot_at) == (desk.now, desk.now, None)
    assert job.schedule_id == desk.the_schedule("nightly").id
    assert desk.slots("nightly") == []
    assert desk.take(queues=["reports"], tasks=["report"]).job_id == job_id


def test_triggering_asks_no_policy(desk):
    desk.schedule(overlap=Overlap.SKIP, max_fires=0)
    desk.pause()
    desk.skip(1)
    ids = [desk.trigger(), desk.trigger()]

    assert live(desk) == ids
    schedule = desk.the_schedule()
    assert (schedule.skips, schedule.fires_left) == (1, 0)


def test_a_triggered_job_is_in_the_way_of_the_next_slot(desk):
    desk.schedule(overlap=Overlap.SKIP)
    job_id = desk.trigger()
    slot(desk)

    assert (desk.slots()[0].reason, desk.slots()[0].blocker) == (Skipped.OVERLAP, job_id)


def test_a_schedule_that_is_not_there_cannot_be_triggered(desk):
    assert desk.trigger("nobody") is None


# Limits.


def test_a_schedule_fires_as_often_as_it_may_and_is_exhausted(desk):
    desk.schedule(max_fires=2, overlap=Overlap.ALLOW, overlap_limit=9)
    slot(desk, 3)

    assert reasons(desk) == [None, None, Skipped.EXHAUSTED]
    schedule = desk.the_schedule()
    assert (schedule.max_fires, schedule.fires_left) == (2, 0)


def test_slots_that_made_no_job_do_not_count(desk):
    desk.schedule(max_fires=2, overlap=Overlap.SKIP)
    desk.skip(1)
    slot(desk, 3)

    assert reasons(desk) == [Skipped.REQUESTED, None, Skipped.OVERLAP]
    assert desk.the_schedule().fires_left == 1


def test_a_new_limit_counts_anew_and_another_change_does_not(desk):
    desk.schedule(max_fires=2)
    slot(desk)
    desk.schedule(max_fires=2, payload=b"other")
    assert desk.the_schedule().fires_left == 1

    desk.schedule(max_fires=3, payload=b"other")
    assert desk.the_schedule().fires_left == 3


def test_a_schedule_without_a_limit_counts_nothing(desk):
    desk.schedule()
    slot(desk)

    assert (desk.the_schedule().max_fires, desk.the_schedule().fires_left) == (None, None)


# Misfires.


@pytest.mark.parametrize(
    ("late", "reason"),
    [(timedelta(), None), (10 * SECOND, None), (11 * SECOND, Skipped.MISFIRE)],
    ids=["on time", "late", "missed"],
)
def test_a_schedule_that_skips_misfires_fires_only_what_was_not_missed(desk, late, reason):
    desk.schedule(misfire=Misfire.SKIP)
    desk.advance(MINUTE + late)
    desk.fire_due()

    assert reasons(desk) == [reason]


@pytest.mark.parametrize("misfire", [Misfire.LATEST, Misfire.ALL])
def test_a_missed_slot_inside_the_window_is_fired(desk, misfire):
    desk.schedule(misfire=misfire, catch_up=HOUR)
    desk.advance(MINUTE + HOUR)
    desk.fire_due()

    assert reasons(desk) == [None]


def test_schedules_that_want_every_slot_have_a_spec_of_their_own(desk):
    desk.schedule("latest", misfire=Misfire.LATEST, catch_up=HOUR)
    desk.schedule("skip", misfire=Misfire.SKIP, catch_up=HOUR)
    desk.schedule("all", misfire=Misfire.ALL, catch_up=HOUR)
    desk.schedule("all too", misfire=Misfire.ALL, catch_up=HOUR)
    desk.schedule("all for a day", misfire=Misfire.ALL, catch_up=DAY)
    desk.schedule("all for ever", misfire=Misfire.ALL, catch_up=None)
    desk.schedule("all for ever too", misfire=Misfire.ALL, catch_up=None)
    desk.schedule("latest for ever", misfire=Misfire.LATEST, catch_up=None)

    desk.advance(MINUTE)

    specs = sorted((spec.one_by_one, spec.catch_up or timedelta()) for spec in desk.due())
    assert specs == [(False, timedelta()), (True, timedelta()), (True, HOUR), (True, DAY)]
    assert sorted(chunk.fired for chunk in desk.fire_due()) == [1, 2, 2, 3]


def test_every_slot_with_no_window_is_not_the_newest_for_all(desk):
    desk.schedule("all", misfire=Misfire.ALL, catch_up=timedelta())
    desk.schedule("latest", misfire=Misfire.LATEST, catch_up=timedelta())
    desk.advance(MINUTE)

    assert {(spec.one_by_one, spec.catch_up) for spec in desk.due()} == {(False, None), (True, timedelta())}


# Fires that nobody is to make a job of.


def test_a_fire_that_is_to_be_skipped_is_written_with_its_reason_since_and_note(desk):
    reason = Skipped.CALENDAR
    desk.schedule("a", max_fires=3)
    desk.schedule("b")
    desk.pause("b")
    desk.skip(1, "a")
    since = desk.now + MINUTE
    desk.advance(HOUR)
    desk.fire_due(slot_at=desk.now, since=since, skip=reason, note="a holiday")

    for name in ("a", "b"):
        [skipped] = desk.slots(name)
        assert (skipped.disposition, skipped.reason) == (Disposition.SKIPPED, reason)
        assert (skipped.since, skipped.note, skipped.slot_at) == (since, "a holiday", desk.now)
    assert desk.jobs() == []
    assert (desk.the_schedule("a").skips, desk.the_schedule("a").fires_left) == (1, 3)


def test_a_fire_that_the_breaker_leaves_out_is_dropped_by_those_only_who_wanted_it(desk):
    for name in ("a", "b", "c"):
        desk.schedule(name, misfire=Misfire.ALL, catch_up=None)
    desk.pause("b")
    desk.skip(1, "c")
    since = desk.now + MINUTE
    desk.advance(HOUR)
    [chunk] = desk.fire_due(slot_at=desk.now - MINUTE, since=since, skip=Skipped.BREAKER)

    # A request to skip one slot does not hide that the others were dropped.
    assert [desk.slots(name)[0].reason for name in ("a", "b", "c")] == [
        Skipped.BREAKER,
        Skipped.PAUSED,
        Skipped.BREAKER,
    ]
    dropped = tuple(Drop(schedule=name, reason=Skipped.BREAKER) for name in ("a", "c"))
    assert (chunk.dropped, chunk.since) == (dropped, since)
    assert desk.the_schedule("c").skips == 1
    assert desk.jobs() == []


def test_a_note_goes_with_a_slot_that_fires_too(desk):
    desk.schedule()
    desk.advance(MINUTE)
    desk.fire_due(note="the clocks change")

    [fired] = desk.slots()
    assert (fired.disposition, fired.note) == (Disposition.FIRED, "the clocks change")


def test_the_reasons_have_an_order(desk):
    desk.schedule(max_fires=0, catch_up=SECOND, overlap=Overlap.SKIP)
    desk.trigger()
    desk.skip(1)
    desk.pause()
    told = []
    desk.advance(MINUTE + 2 * SECOND)
    desk.fire_due()
    told.append(desk.slots()[0].reason)
    desk.resume()
    desk.advance(MINUTE)
    desk.fire_due()
    told.append(desk.slots()[0].reason)
    desk.schedule(max_fires=9, catch_up=SECOND, overlap=Overlap.SKIP)
    for wait in (MINUTE, MINUTE - 2 * SECOND, MINUTE):
        desk.advance(wait)
        desk.fire_due()
        told.append(desk.slots()[0].reason)

    assert told == [
        Skipped.PAUSED,
        Skipped.EXHAUSTED,
        Skipped.TOO_LATE,
        Skipped.REQUESTED,
        Skipped.OVERLAP,
    ]


# Requests to skip are for slots, also where missed ones share a row.


def combined(desk: Desk, count: int) -> None:
    """Let that many slots pass and open the newest for all of them, ten seconds late."""
    slots = [desk.now + number * MINUTE for number in range(1, count + 1)]
    desk.advance(count * MINUTE)
    newest_first = tuple(reversed(slots[:-1]))
    desk.fire_due(slot_at=slots[-1], since=slots[0], combined=newest_first, next_at=slots[-1] + MINUTE)


@pytest.mark.parametrize(
    ("asked", "fires", "left"), [(1, True, 0), (5, True, 0), (6, False, 0), (8, False, 2)]
)
def test_a_request_to_skip_slots_covers_as_many_of_those_that_were_combined(desk, asked, fires, left):
    desk.schedule(max_fires=3)
    desk.skip(asked)
    combined(desk, 6)

    [row] = desk.slots()
    assert (row.reason, row.job_id is not None) == ((None, True) if fires else (Skipped.REQUESTED, False))
    assert (desk.the_schedule().skips, desk.the_schedule().fires_left) == (left, 2 if fires else 3)


def test_slots_before_a_schedule_was_active_use_up_no_request(desk):
    desk.schedule("old")
    desk.advance(3 * MINUTE + SECOND)  # its slots of these minutes are not decided yet
    desk.schedule("new", next_at=desk.now + 59 * SECOND)
    desk.skip(2, "new")
    slots = [desk.due()[0].next_at + number * MINUTE for number in range(5)]
    desk.advance(slots[-1] - desk.now)
    desk.fire_due(slot_at=slots[-1], since=slots[0], combined=tuple(reversed(slots[:-1])))

    assert [desk.slots(name)[0].reason for name in ("old", "new")] == [None, Skipped.REQUESTED]
    assert desk.the_schedule("new").skips == 0


def test_requests_in_one_transaction_with_others_are_counted_for_each_schedule(desk):
    for name, asked in (("a", 2), ("b", 4), ("c", 0)):
        desk.schedule(name, max_fires=5)
        desk.skip(asked, name) if asked else None
    combined(desk, 3)

    schedules = [desk.the_schedule(name) for name in ("a", "b", "c")]
    assert [desk.slots(each.name)[0].reason for each in schedules] == [None, Skipped.REQUESTED, None]
    assert [(each.skips, each.fires_left) for each in schedules] == [(0, 4), (1, 5), (0, 4)]


# The newest missed slot waits for what is live, one at a time.


@pytest.mark.parametrize(
    "policy",
    [
        {"overlap": Overlap.SKIP},
        {"overlap": Overlap.ALLOW, "overlap_limit": 1},
        {"overlap": Overlap.QUEUE_ONE},
        {"overlap": Overlap.QUEUE_ALL},
    ],
)
def test_the_newest_missed_slot_waits_for_a_job_from_before_the_outage(desk, policy):
    desk.schedule(**policy)
    slot(desk)
    [before] = live(desk)
    combined_and_late(desk)

    assert reasons(desk) == [None, None]
    [first, waiting] = desk.jobs()[::-1]
    assert first.id == before
    assert waiting.run_at > desk.now + DAY, "it is held"
    assert desk.release() == 0
    desk.end(desk.take(), Verdict.SUCCEEDED)
    assert desk.release() == 1
    assert desk.take().job_id == waiting.id


def test_with_replace_the_newest_missed_slot_takes_the_place_of_the_live_job(desk):
    desk.schedule(overlap=Overlap.REPLACE)
    slot(desk)
    [before] = live(desk)
    combined_and_late(desk)

    [job] = desk.jobs()
    assert job.id != before
    assert job.run_at <= desk.now


def test_while_one_waits_further_missed_slots_are_skipped_as_overlapping(desk):
    desk.schedule(overlap=Overlap.SKIP)
    slot(desk)
    combined_and_late(desk)
    [running, waiting] = live(desk)
    combined_and_late(desk)

    assert reasons(desk) == [None, None, Skipped.OVERLAP]
    assert desk.slots()[0].blocker == running
    assert live(desk) == [running, waiting]


def test_a_slot_on_time_does_not_wait(desk):
    desk.schedule(overlap=Overlap.SKIP)
    slot(desk, 2)

    assert reasons(desk) == [None, Skipped.OVERLAP]


def test_with_misfire_skip_a_missed_slot_does_not_wait(desk):
    desk.schedule(misfire=Misfire.SKIP)
    slot(desk)
    combined_and_late(desk)

    assert reasons(desk) == [None, Skipped.MISFIRE]


def combined_and_late(desk: Desk) -> None:
    """Three slots pass while no scheduler is alive; the newest is opened half a minute late."""
    slots = [desk.now + number * MINUTE for number in range(1, 4)]
    desk.advance(3.5 * MINUTE)
    desk.fire_due(slot_at=slots[-1], since=slots[0], next_at=desk.now + MINUTE)


# Spreading.


def test_a_job_is_due_at_its_schedules_own_place_in_the_window(desk):
    desk.schedule(offset=7 * MINUTE)
    slot(desk)

    [job] = desk.jobs()
    assert (job.run_at, job.slot_at, job.state) == (desk.now + 7 * MINUTE, desk.now, JobState.DELAYED)


def test_jitter_stays_below_its_bound_and_differs_from_schedule_to_schedule(desk):
    desk.schedule_all(*(desk.new_schedule(f"s{n}", offset=MINUTE, jitter=MINUTE) for n in range(50)))
    slot(desk)

    delays = [job.run_at - desk.now for job in desk.jobs(limit=100)]
    assert len(delays) == 50
    assert all(MINUTE <= delay < 2 * MINUTE for delay in delays)
    assert len(set(delays)) > 25


def test_an_offset_of_days_is_days_of_twenty_four_hours(desk):
    desk.schedule(offset=timedelta(days=3, microseconds=1))
    slot(desk)

    assert [job.run_at for job in desk.jobs()] == [desk.now + timedelta(days=3, microseconds=1)]


# Deleting.


def test_a_deleted_schedule_fires_no_more_but_keeps_its_ledger_and_versions(desk):
    desk.schedule()
    slot(desk)
    ledger, created = desk.slots(), desk.versions()
    desk.advance(SECOND)

    assert desk.delete(author="ann") == ["s"]
    assert (desk.schedules(), desk.run(desk.store.schedules.get("s"))) == ([], None)
    slot(desk, 2)
    assert desk.slots() == ledger
    assert len(desk.jobs()) == 1
    *before, last = desk.versions()
    assert before == created
    assert (last.change, last.author, last.version) == (Change.DELETED, "ann", 2)


def test_deleting_answers_only_those_that_were_there(desk):
    desk.schedule("a")
    desk.schedule("b")

    assert sorted(desk.delete("a", "nobody")) == ["a"]
    assert desk.delete("a") == []
    assert [schedule.name for schedule in desk.schedules()] == ["b"]


def test_a_schedule_made_again_is_another_one_and_its_story_goes_on(desk):
    desk.schedule()
    slot(desk)
    desk.delete()
    desk.schedule()
    slot(desk)

    assert [version.change for version in desk.versions()] == [Change.CREATED, Change.DELETED, Change.CREATED]
    assert len(desk.slots()) == 2
    assert desk.the_schedule().version == 1


# Editing and versions.


def test_code_leaves_alone_what_somebody_edited(desk):
    desk.schedule(payload=b"code")
    assert desk.edit(payload=b"hand", author="ann") == ["s"]
    edited = desk.the_schedule()

    assert desk.schedule(payload=b"newer code") == []
    assert desk.the_schedule() == edited
    assert (edited.edited, edited.payload, edited.version) == (True, b"hand", 2)


def test_an_author_overwrites_what_another_edited(desk):
    desk.schedule()
    desk.edit(payload=b"ann's", author="ann")

    assert desk.edit(payload=b"bob's", author="bob") == ["s"]
    assert [version.author for version in desk.versions()] == [CODE, "ann", "bob"]
    assert desk.the_schedule().payload == b"bob's"


def test_an_author_who_changes_nothing_edits_nothing(desk):
    desk.schedule()

    assert desk.edit() == []
    assert desk.the_schedule().edited is False


def test_a_schedule_that_an_author_made_is_not_codes(desk):
    desk.edit(payload=b"hand")

    assert desk.schedule(payload=b"code") == []
    assert desk.the_schedule().payload == b"hand"


def test_every_version_decodes_to_the_schedule_as_it_was(desk):
    desk.schedule(
        payload=b"\x00\xff",
        overlap=Overlap.ALLOW,
        overlap_limit=3,
        offset=timedelta(days=1, microseconds=1),
        jitter=90 * SECOND,
        max_fires=7,
        catch_up=timedelta(days=2, hours=3),
        expect_start_within=90 * SECOND,
        expect_finish_by=timedelta(hours=5),
    )
    seen = [desk.the_schedule()]
    for change in (
        lambda: desk.edit(payload=b"hand", misfire=Misfire.ALL),
        lambda: desk.pause(note="☃"),
        desk.resume,
    ):
        desk.advance(SECOND)
        change()
        seen.append(desk.the_schedule())

    versions = desk.versions()
    assert [version.schedule for version in versions] == seen
    assert [version.version for version in versions] == [1, 2, 3, 4]
    assert [version.change for version in versions] == [
        Change.CREATED,
        Change.CHANGED,
        Change.PAUSED,
        Change.RESUMED,
    ]
    assert [version.changed_at for version in versions] == [desk.now - n * SECOND for n in (3, 2, 1, 0)]


def test_a_schedule_put_unchanged_is_no_new_version(desk):
    desk.schedule()
    desk.schedule()

    assert [version.author for version in desk.versions()] == [CODE]


def test_counting_down_is_no_new_version(desk):
    desk.schedule(max_fires=5)
    before = desk.the_schedule()
    slot(desk)

    after = desk.the_schedule()
    assert after == msgspec.structs.replace(before, fires_left=4, next_at=after.next_at)
    assert len(desk.versions()) == 1


def test_a_schedule_nobody_ever_made_has_no_versions(desk):
    assert desk.versions("nobody") == []
