"""What every handler works with: the app, its store, and the questions and orders of `ops`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from mainspring.app import Mainspring
from mainspring.clock import Clock
from mainspring.ops.commands import Commands
from mainspring.ops.queries import Queries
from mainspring.ops.queues import Queues
from mainspring.store.ports import Store


class Desk:
    """One app, seen from outside."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app

    @property
    def clock(self) -> Clock:
        """The app's."""
        return self.app.clock

    async def store(self) -> Store:
        """The app's, opened at the first call; raises StoreUnavailable while the database is away."""
        return await self.app.store()

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
