"""Starts, restarts and outages of real processes: what alerts tell of them, and what they do not."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.model.alert import Alert, AlertFilter
from mainspring.store.opener import open_store
from tests.e2e.target import work
from tests.support.processes import Site, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

TARGET = Path(__file__).with_name("target.py")
OUTAGE = 6.0
OPTIONS = ["--lease", "3s", "--heartbeat", "1s"]
SETTINGS = """
[alerts]
every = "300ms"
timeout = "1s"
no_scheduler_after = "1s"
outage_after = "4s"
"""


@pytest.fixture
def site(tmp_path: Path, run: Callable[[Any], Any]) -> Iterator[Site]:
    url = f"sqlite:///{tmp_path / 'mainspring.db'}"
    store = open_store(url, clock=SystemClock())
    opened = Site(url, store, folder=tmp_path, target=TARGET, run=run)
    try:
        run(store.migrate())
        yield opened
    finally:
        opened.end()
        run(store.close())


def _alerts(site: Site) -> list[Alert]:
    found: list[Alert] = site.ask(site.store.alerts.find(AlertFilter(limit=100)))
    return found


def test_starts_and_restarts_open_nothing_and_an_outage_is_told_once_it_is_over(
    site: Site, tmp_path: Path
) -> None:
    settings = tmp_path / "alerts.toml"
    settings.write_text(SETTINGS)
    options = ["--config", str(settings), *OPTIONS]
    site.scheduler("writes-the-schedules", *options).kill()
    site.put([work.job(0.01)])
    until(
        lambda: not any(each.alive for each in site.ask(site.store.processes.all(at=None))),
        "its lease to end",
    )

    # Schedules, a job that is due, no scheduler and, for a moment, no worker's lease either.
    worker = site.worker("worker", *options)
    until(lambda: site.effects.of("end"), "the job to run")
    _watched(site)
    scheduler = site.scheduler("scheduler", *options)
    _watched(site)
    for process in (scheduler, worker):
        process.signal(signal.SIGTERM)
    assert (scheduler.exit_code(), worker.exit_code()) == (0, 0)
    worker, scheduler = site.worker("worker-2", *options), site.scheduler("scheduler-2", *options)
    _watched(site)
    # On a busy machine a restart may have been a short outage by these settings.
    known = _alerts(site)
    assert {each.rule for each in known} <= {"process_lost", "outage"}

    worker.kill()
    scheduler.kill()
    time.sleep(OUTAGE)  # nothing is there that could be asked for a condition
    site.worker("worker-3", *options)
    site.scheduler("scheduler-3", *options)

    def outages() -> list[Alert]:
        return [each for each in _alerts(site) if each.rule == "outage" and each not in known]

    [told] = until(outages, "the outage to be told")
    _watched(site)
    assert len(outages()) == 1
    assert re.fullmatch(
        r"nothing ran from .* UTC to .* UTC \((5|6|7|8|9|1\d)s\): .* It is over", told.sentence
    )
    critical = [each.rule for each in _alerts(site) if each.severity == "critical"]
    assert critical == [], "a start is no outage"


def _watched(site: Site) -> None:
    """Somebody has looked a few times more: the alerters' lease was renewed."""

    def renewed_at() -> Any:
        found = [
            each for each in site.ask(site.store.leases.all(at=None)) if each.name == "__alerts" and each.held
        ]
        return found[0].expires_at if found else None

    for _look in range(4):
        before = renewed_at()
        until(lambda before=before: renewed_at() not in (None, before), "the next look")
