"""Leases of user code across processes: one holder is frozen beyond its lease, one is killed."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring.model.process import LeaseInfo
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

LEADER = Path(__file__).with_name("leader.py")
TTL = timedelta(seconds=2)
ASKS_WITHIN = timedelta(seconds=2)
"""Who waits asks every half second; the rest is for a busy machine."""


class Election:
    """Leaders on one site, and the table they all write to."""

    def __init__(self, site: Site, ledger: Path) -> None:
        self.site, self.ledger = site, ledger

    def leader(self, name: str) -> Process:
        return self.site.script(LEADER, name, str(self.ledger), f"{TTL.total_seconds():g}s")

    def elect(self) -> tuple[Process, Process]:
        """Two of them; the first leads with token 1 and has written."""
        first = self.leader("first")
        until(lambda: first.says("token 1 leads"), "the first to lead")
        second = self.leader("second")
        until(lambda: self.writes(1), "a write of the first")
        return first, second

    def writes(self, token: int) -> int:
        return self.tokens().count(token)

    def tokens(self) -> list[int]:
        """Of every write that was accepted, in order."""
        with contextlib.closing(sqlite3.connect(self.ledger, timeout=10)) as connection:
            return [token for (token,) in connection.execute("SELECT token FROM writes ORDER BY number")]

    def lease(self) -> LeaseInfo:
        [info] = self.site.ask(self.site.store.leases.all(at=None))
        assert isinstance(info, LeaseInfo)
        return info

    def assert_taken_over(self, before: LeaseInfo) -> None:
        """Not while it was another's, and soon after: both by the database's clock."""
        after = self.lease()
        assert (before.token, after.token) == (1, 2)
        assert timedelta() <= after.acquired_at - before.expires_at <= ASKS_WITHIN


@pytest.fixture
def election(site: Site, tmp_path: Path) -> Election:
    return Election(site, tmp_path / "ledger.db")


def test_a_frozen_leader_finds_its_lease_lost_and_its_late_writes_refused(election: Election) -> None:
    frozen, other = election.elect()
    election.site.freeze(frozen, election.ledger)
    before = election.lease()
    written = election.writes(1)
    until(lambda: election.writes(2), "the other to lead and to write")

    election.assert_taken_over(before)
    assert other.says("token 2 leads")
    assert not frozen.says("token 1 cancelled")

    frozen.signal(signal.SIGCONT)
    until(lambda: frozen.says("token 1 lost"), "the frozen one to find its lease lost")
    assert frozen.says("token 1 cancelled")
    assert frozen.says("token 1 refused")
    assert election.writes(1) == written
    assert election.tokens() == sorted(election.tokens())

    # It stands for election again, as any other.
    other.kill()
    until(lambda: election.writes(3), "the one that was frozen to lead again")
    assert frozen.says("token 3 leads")
    assert not other.says("lost")


def test_the_lease_of_a_killed_leader_is_had_by_another_after_its_time(election: Election) -> None:
    killed, other = election.elect()
    killed.kill()
    before = election.lease()
    assert not other.says("leads")
    until(lambda: election.writes(2), "the other to lead and to write")

    election.assert_taken_over(before)
    assert other.says("token 2 leads")
    assert before.expires_at - before.acquired_at >= TTL
    assert election.tokens() == sorted(election.tokens())
