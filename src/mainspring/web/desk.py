"""What every handler works with: the app, its store, and the questions and orders of `ops`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from mainspring.app import Mainspring
from mainspring.clock import Clock
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.ops.commands import Commands
from mainspring.ops.queries import Queries
from mainspring.ops.queues import Queues
from mainspring.store.around import timed
from mainspring.store.ports import Store
from mainspring.telemetry import StoreRecovered, StoreTrouble
from mainspring.waiting import NOW

NAME = "server"


class Desk:
    """One app, seen from outside."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app
        self._store: Store | None = None
        self._watched: Store | None = None
        self._away = False

    @property
    def clock(self) -> Clock:
        """The app's."""
        return self.app.clock

    async def store(self) -> Store:
        """The app's, opened at the first call; raises StoreUnavailable while the database is away. An outage
        is told as other processes tell theirs."""
        try:
            store = await self.app.store()
        except StoreUnavailable as error:
            self.noticed(error)
            raise
        if store is not self._store:
            self._store, self._watched = store, timed(store, self.clock, self._called)
        assert self._watched is not None  # noqa: S101 - set with the store
        return self._watched

    def noticed(self, error: BaseException) -> None:
        """A request met this error: if the store is away, that is told."""
        if isinstance(error, StoreUnavailable | AnswerLost):
            self._away = True
            self.app.telemetry.emit(StoreTrouble.of(NAME, error, NOW))

    def _called(self, call: str, seconds: float, *, error: BaseException | None) -> None:
        if error is not None:
            self.noticed(error)
        elif self._away:
            self._away = False
            self.app.telemetry.emit(StoreRecovered(loop=NAME))

    async def queries(self) -> Queries:
        """What operators ask."""
        return Queries(await self.store(), self.clock)

    async def commands(self) -> Commands:
        """What operators order."""
        return Commands(await self.store(), self.clock)

    async def queues(self) -> Queues:
        """Questions and orders about queues."""
        return Queues(await self.store(), self.clock)


def desk_of(request: Request) -> Desk:
    """The desk of the app that serves this request."""
    desk: Desk = request.app.state.desk
    return desk


AtDesk = Annotated[Desk, Depends(desk_of)]
