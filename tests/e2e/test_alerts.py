"""Alerts of real processes: for each rule one comes within 30 s of its cause, once; so does its recovery."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from signal import SIGCONT
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.model.alert import AlertFilter, NoteState
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.job import JobFilter
from mainspring.model.schedule import NewSchedule
from mainspring.store.opener import open_store
from tests.e2e.alert_target import away
from tests.support.processes import Site, until
from tests.support.receiver import Receiver, receiving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200)]

WITHIN = 30.0
SECOND = timedelta(seconds=1)
TARGET = Path(__file__).with_name("alert_target.py")
WRONG = ["breaking", "waiting", "sticking"]
"""Schedules of the app that something is wrong with."""
SETTINGS = """
[alerts]
to = ["log", "{url}/hook"]
allow_private = ["127.0.0.0/8"]
every = "500ms"
timeout = "2s"
storm = 100
missed_after = "2s"
failing_after = 2
retrying_after = "1s"
dead_growth = 2
dead_window = "1h"
oldest_waiting = "2s"
no_worker_after = "1s"
no_scheduler_after = "1s"
restart_within = "1s"
scheduler_lag = "2s"
store_after = "1s"
recover_after = "1s"
ping_url = "{url}/ping"
ping_every = "1s"

[scheduler]
# What it cannot read has it look again after this.
poll = "200ms"
"""
OPTIONS = ["--lease", "3s", "--heartbeat", "1s"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


@pytest.fixture
def file_site(tmp_path: Path, run: Callable[[Any], Any]) -> Iterator[Site]:
    """On a file: there is a lock that a test can hold."""
    url = f"sqlite:///{tmp_path / 'mainspring.db'}"
    store = open_store(url, clock=SystemClock())
    site = Site(url, store, folder=tmp_path, target=TARGET, run=run)
    try:
        run(store.migrate())
        yield site
    finally:
        site.end()
        run(store.close())


@pytest.fixture
def settings(tmp_path: Path, receiver: Receiver) -> list[str]:
    file = tmp_path / "alerts.toml"
    file.write_text(SETTINGS.format(url=receiver.url))
    return ["--config", str(file), *OPTIONS]


def test_each_rule_is_told_of_once_and_so_is_its_recovery_and_pings_stop_meanwhile(
    file_site: Site, receiver: Receiver, settings: list[str], tmp_path: Path
) -> None:
    site = file_site
    _write_unreadable(site)
    began = time.monotonic()
    scheduler = site.scheduler("scheduler", *settings)
    worker = site.worker("worker", *settings)
    wrong = [
        "missed:unreadable",
        "scheduler_lag:schedulers",
        "late_start:waiting",
        "late_finish:sticking",
        "failed:breaks",
        "failing:breaking",
        "dead_growth:dead letters",
        "oldest_waiting:nobodys",
        "no_worker:nobodys",
    ]
    site.put([away.job()])
    _comes(receiver, "opened", [*wrong, "retrying:away"], began)
    assert not site.ask(site.store.dead_letters.find(DeadFilter(task="away"))), (
        "long before its job is a dead letter"
    )

    began = time.monotonic()
    (tmp_path / "stuck.txt").touch()
    site.ask(site.store.schedules.delete(["unreadable"], author="ann", at=None))
    site.ask(site.store.schedules.pause(WRONG, author="ann", note=None, at=None))
    until(lambda: not _running(site, "breaks"), "what breaks to have broken")
    site.ask(
        site.store.dead_letters.purge(
            [each.id for each in site.ask(site.store.dead_letters.find(DeadFilter(limit=1000)))]
        )
    )
    waiting = [
        each.id for each in site.ask(site.store.jobs.find(JobFilter(queue="nobodys", limit=1000), at=None))
    ]
    site.ask(site.store.jobs.cancel(waiting, at=None))
    _comes(receiver, "recovered", wrong, began)

    # Frozen between sending and saying so, it would be followed by one who sends the same again.
    until(lambda: _all_is_said(site), "every note to be on record as sent")
    site.freeze(scheduler)
    began = time.monotonic()
    gone = ["no_scheduler:schedulers", "process_lost:scheduler scheduler"]
    _comes(receiver, "opened", gone, began)
    # Nor does anybody say that all is well: whoever is on duty now does not.
    until(lambda: worker.says("no ping to"), "the worker to hold its tongue")
    heard = len(receiver.pings)
    until(lambda: worker.says("no ping to", times=3), "two more chances to ping")
    assert len(receiver.pings) == heard
    scheduler.signal(SIGCONT)
    began = time.monotonic()
    _comes(receiver, "recovered", gone, began)
    until(lambda: len(receiver.pings) > heard, "pings again")

    _came_once(receiver, [*wrong, *gone])
    listed = site.ask(site.store.alerts.find(AlertFilter(limit=1000)))
    assert {f"{each.rule}:{each.subject}" for each in listed} >= {*wrong, *gone}

    # Locked between sending and saying so, the store would be told of the same again.
    until(lambda: _all_is_said(site), "every note to be on record as sent")
    with closing(sqlite3.connect(site.url.removeprefix("sqlite:///"), isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        unreached = ["store:scheduler", "store:worker"]
        _comes(receiver, "opened", unreached, began)
        lock.execute("ROLLBACK")
    _comes(receiver, "recovered", unreached, time.monotonic())
    _came_once(receiver, unreached)
    assert scheduler.lives


def _comes(receiver: Receiver, kind: str, keys: Sequence[str], began: float) -> None:
    """All of them are told of, each within the time that is promised."""
    until(lambda: set(keys) <= set(receiver.keys(kind)), f"{kind}: {keys}", within=60)
    for told, key, at in receiver.told(kind):
        if key in keys:
            assert at - began < WITHIN, f"{told} {key} came after {at - began:.1f} s"


def _all_is_said(site: Site) -> bool:
    alerts = site.ask(site.store.alerts.find(AlertFilter(limit=1000)))
    notes = [note for alert in alerts for note in site.ask(site.store.alerts.notes(alert.id))]
    return all(note.state is NoteState.SENT for note in notes)


def _came_once(receiver: Receiver, keys: Sequence[str]) -> None:
    ids = [(message.body["id"], message.body["type"]) for message in receiver.messages]
    assert len(set(ids)) == len(ids), "a message came twice"
    for key in keys:
        for kind in ("opened", "recovered"):
            assert receiver.keys(kind).count(key) == 1, f"{kind} {key}: {receiver.told()}"


def _write_unreadable(site: Site) -> None:
    """A schedule whose slot has come and that no scheduler of this version can read."""
    now = site.ask(site.store.now(at=None))
    unreadable = NewSchedule(
        name="unreadable", task="breaks", trigger="from the future", payload=b"{}", next_at=now + SECOND
    )
    site.ask(site.store.schedules.put([unreadable], author="ann", at=None))


def _running(site: Site, task: str) -> int:
    return sum(e.running + e.ready for e in site.ask(site.store.queues.depth(at=None)) if e.task == task)
