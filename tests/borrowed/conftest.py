"""An app on a migrated database of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.model.job import Job, JobFilter
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock


class Shop:
    """The app under test, and what is in its queue."""

    def __init__(self, url: str, store: Any, run: Callable[[Any], Any], clock: ManualClock) -> None:
        self.url, self.run, self.clock = url, run, clock
        self.store = store
        self.app = Mainspring._with(url, clock=clock)

        @self.app.task(name="bill.send", queue="mail", priority=7)
        def bill(tenant: str, amount: float = 0.0) -> None: ...

        self.bill = bill

    @property
    def path(self) -> str:
        return self.url.removeprefix("sqlite:///")

    def jobs(self) -> list[Job]:
        """Oldest first."""
        found: list[Job] = self.run(self.store.jobs.find(JobFilter(), at=self.clock.stamp()))
        return found[::-1]


@pytest.fixture
def postgres_shop(postgres_url: str, clock: ManualClock, run: Any) -> Iterator[Shop]:
    store = open_store(postgres_url, clock=clock)
    try:
        yield Shop(postgres_url, store, run, clock)
    finally:
        run(store.close())


@pytest.fixture
def sqlite_shop(tmp_path: Any, clock: ManualClock, run: Any) -> Iterator[Shop]:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    store = open_store(url, clock=clock)
    try:
        run(store.migrate())
        yield Shop(url, store, run, clock)
    finally:
        run(store.close())
