"""The policies of a schedule, as users give them."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any, get_args

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidArgument
from mainspring.model.job import OnDuplicate, OnDuplicateOption, Scope, ScopeOption
from mainspring.model.schedule import Misfire, MisfireOption, Overlap, OverlapOption
from mainspring.model.workflow import When, WhenOption
from mainspring.tasks.schedule_options import Policies, PolicyOptions
from mainspring.triggers.rolled import Roll, RollOption
from mainspring.triggers.zones import Fold, FoldOption, Gap, GapOption

MINUTE = timedelta(minutes=1)


def given(name: str = "nightly", **options: Any) -> Policies:
    return PolicyOptions(**options).policies(name)


def test_the_defaults_coalesce_what_was_missed_and_skip_what_overlaps() -> None:
    assert given() == Policies(
        misfire=Misfire.LATEST,
        catch_up=None,
        overlap=Overlap.SKIP,
        overlap_limit=1,
        offset=timedelta(),
        jitter=timedelta(),
        max_fires=None,
    )


def test_allow_is_short_for_an_overlap_of_so_many() -> None:
    assert (given(allow=3).overlap, given(allow=3).overlap_limit) == (Overlap.ALLOW, 3)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"overlap": "sometimes"}, "schedule.overlap"),
        ({"overlap": ""}, "schedule.overlap"),
        ({"overlap": "skip", "allow": 2}, "schedule.allow"),
        ({"overlap": "allow"}, "schedule.allow"),
        ({"allow": 0}, "schedule.allow"),
        ({"allow": True}, "schedule.allow"),
        ({"misfire": "never"}, "schedule.misfire"),
        ({"window": "soon"}, "schedule.window"),
        ({"jitter": "-1s"}, "schedule.jitter"),
        ({"expect_start_within": "0s"}, "schedule.expect_start_within"),
        ({"expect_start_within": "soon"}, "schedule.expect_start_within"),
        ({"expect_start_within": "5s", "jitter": "5s"}, "schedule.expect_start_within"),
        ({"expect_finish_by": -1}, "schedule.expect_finish_by"),
        ({"expect_start_within": "2m", "expect_finish_by": "1m"}, "schedule.expect_finish_by"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        given(**options)

    assert refused.value.field == field


def test_a_schedule_has_the_same_place_in_its_window_for_ever() -> None:
    places = {name: given(name, window="15m").offset for name in ("a", "b", "nightly-invoices")}

    assert places == {name: given(name, window="15m").offset for name in places}
    assert len(set(places.values())) == 3
    assert places["nightly-invoices"] == timedelta(seconds=PINNED)


PINNED = 325.967


def test_places_spread_over_the_whole_window() -> None:
    offsets = [given(f"tenant-{n}", window="10m").offset for n in range(2000)]

    assert all(timedelta() <= offset < 10 * MINUTE for offset in offsets)
    per_minute = [sum(MINUTE * n <= offset < MINUTE * (n + 1) for offset in offsets) for n in range(10)]
    assert min(per_minute) > 150


def test_the_app_carries_them_to_the_store() -> None:
    app = Mainspring("sqlite://:memory:")

    @app.task
    def nothing() -> None: ...

    declared = app.schedule(
        "s", nothing, every="1m", misfire="all", catch_up="2h", overlap="queue_one", jitter="5s", max_fires=9
    )
    written = declared.new_schedule(app._clock.now())

    assert (written.misfire, written.catch_up) == (Misfire.ALL, timedelta(hours=2))
    assert (written.overlap, written.jitter, written.max_fires) == (
        Overlap.QUEUE_ONE,
        timedelta(seconds=5),
        9,
    )


@pytest.mark.parametrize(
    ("words", "processes"),
    [
        (MisfireOption, Misfire),
        (OverlapOption, Overlap),
        (ScopeOption, Scope),
        (OnDuplicateOption, OnDuplicate),
        (WhenOption, When),
        (GapOption, Gap),
        (FoldOption, Fold),
        (RollOption, Roll),
    ],
)
def test_type_checkers_know_the_same_words_as_we_do(words: object, processes: type[StrEnum]) -> None:
    assert get_args(words) == tuple(processes)
