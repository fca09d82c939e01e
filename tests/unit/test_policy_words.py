"""Policies in sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.admin.schedules.sheet import policies
from mainspring.model.schedule import Misfire, Overlap, Schedule
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every

AT = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def _schedule(**fields: Any) -> Schedule:
    given: dict[str, Any] = dict.fromkeys(
        ("max_fires", "fires_left", "paused_at", "paused_by", "pause_note", "next_at")
    )
    given |= {"misfire": Misfire.LATEST, "catch_up": 24 * HOUR, "overlap": Overlap.SKIP, "overlap_limit": 1}
    given |= {"offset": timedelta(), "jitter": timedelta(), "max_attempts": 1, "queue": "q", "priority": 0}
    given |= {"skips": 0, "version": 1, "active_from": AT, "edited": False, "trigger": "", "payload": b"{}"}
    return Schedule(id=1, name="s", task="t", **{**given, **fields})


def _said(schedule: Schedule, trigger: Any = None) -> dict[str, str]:
    return {each.name: each.sentence for each in policies(schedule, trigger)}


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("overlap", Overlap)
def test_every_policy_has_a_sentence(misfire: Misfire, overlap: Overlap) -> None:
    said = _said(_schedule(misfire=misfire, overlap=overlap, overlap_limit=4))

    assert all(sentence.endswith(".") for sentence in said.values())
    assert ("no older than 1d" in said["misfire"]) == (misfire is not Misfire.SKIP)
    assert ("At most 4" in said["overlap"]) == (overlap is Overlap.ALLOW)


def test_only_what_has_a_say_is_told() -> None:
    assert list(_said(_schedule(), Every(HOUR))) == ["misfire", "overlap", "attempts"]
    busy = _schedule(offset=HOUR, jitter=HOUR / 60, max_fires=10, fires_left=3, expires=HOUR, max_attempts=5)
    said = _said(busy, Cron("30 2 * * *", "Europe/Berlin", fold="both"))
    assert (
        said["delay"]
        == "Its place in its window is 1h after each slot. A random delay below 1m is added each time."
    )
    assert said["max_fires"] == "It fires 10 times in all; 3 are left."
    assert said["attempts"] == "A job is tried 5 times before it is a dead letter."
    assert said["fold"] == "A local time that comes twice has a slot each time."
    assert "1h after its slot" in said["expires"]
