"""Schedulers that start together with ten thousand declared schedules."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.many_target import MANY
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

TARGET = Path(__file__).with_name("many_target.py")
TOGETHER = 3


def test_schedulers_that_start_together_with_ten_thousand_schedules_all_live(site: Site) -> None:
    first = _started(site, "first")

    assert Counter(each.version for each in site.ask(site.store.schedules.all())) == {1: MANY}
    assert sum(each.log.count("schedules written: ") for each in first) >= 1
    assert all(len(line) < 1000 for each in first for line in each.log.splitlines())
    for each in first:
        each.kill()

    again = _started(site, "again")  # a redeploy of the same code

    assert Counter(each.version for each in site.ask(site.store.schedules.all())) == {1: MANY}
    assert not any(each.says("schedules written") for each in again)


def _started(site: Site, when: str) -> list[Process]:
    """As many as start together, each with its lease."""
    together = [
        site.start("scheduler", f"{when}-{number}", target=TARGET, joined=False) for number in range(TOGETHER)
    ]
    for each in together:
        until(each.joined, f"{each.name} to join")
    return together
