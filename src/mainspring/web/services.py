"""What every handler works with: the app, its store, and the questions and orders of one actor."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from mainspring.admin.access import Credentials
from mainspring.admin.admin import Admin
from mainspring.admin.order import Recorder
from mainspring.app import Mainspring
from mainspring.clock import Clock
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.access import AccessRole, Actor
from mainspring.store.around import timed
from mainspring.store.store import Store
from mainspring.telemetry.events import StoreRecovered, StoreTrouble
from mainspring.waiting import NOW

NAME = "server"
_PAGES = Actor(name=NAME, role=AccessRole.VIEWER, via=NAME)


class Services:
    """One app, seen from outside."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app
        self._store: Store | None = None
        self._watched: Store | None = None
        self._away = False

    @property
    def clock(self) -> Clock:
        """The app's."""
        return self.app._clock

    async def store(self) -> Store:
        """The app's, opened at the first call; raises StoreUnavailable while the database is away. An outage
        is an event, as in other processes."""
        try:
            store = await self.app._store()
        except StoreUnavailable as error:
            self.noticed(error)
            raise
        if store is not self._store:
            self._store, self._watched = store, timed(store, self.clock, self._called)
        assert self._watched is not None  # noqa: S101 - set with the store
        return self._watched

    def noticed(self, error: BaseException) -> None:
        """A request met this error: if the store is away, that becomes an event."""
        if isinstance(error, StoreUnavailable | AnswerLost):
            self._away = True
            self.app._telemetry.emit(StoreTrouble.of(NAME, error, NOW))

    def _called(self, call: str, seconds: float, *, error: BaseException | None) -> None:
        if error is not None:
            self.noticed(error)
        elif self._away:
            self._away = False
            self.app._telemetry.emit(StoreRecovered(loop=NAME))

    @property
    def questions(self) -> Admin:
        """Questions of pages, which give no orders."""
        return self.admin(_PAGES)

    def admin(self, actor: Actor, address: str = "") -> Admin:
        """Questions and orders in the name of this actor."""
        return self.app.admin(actor, address=address, store=self.store)

    async def recorder(self) -> Recorder:
        """The audit log, to be written to."""
        return await self.questions.context.recorder()

    async def credentials(self) -> Credentials:
        """What requests may come in with."""
        return Credentials(await self.store(), self.clock, self.app._entropy, self.app.settings.access)


def services_of(request: Request) -> Services:
    """The services of the app that serves this request."""
    services: Services = request.app.state.services
    return services


def admin_of(request: Request) -> Admin:
    """Questions and orders of the actor who sent this request."""
    return services_of(request).admin(request.state.actor, address_of(request))


def address_of(request: Request) -> str:
    """Where a request came from, as far as the server knows."""
    return request.client.host if request.client else ""


TheServices = Annotated[Services, Depends(services_of)]
AnAdmin = Annotated[Admin, Depends(admin_of)]
