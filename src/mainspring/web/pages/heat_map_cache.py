"""The heat map of load, computed in a thread and cached: a page never waits for it."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta

from starlette.requests import Request

from mainspring.admin.schedules.triggers import calendars_of
from mainspring.admin.simulation.heat_map import HeatMap, heat_map
from mainspring.app import Mainspring
from mainspring.errors import MainspringError
from mainspring.web.services import services_of

DAYS = 14
FRESH = timedelta(minutes=1)
"""So old it may be before it is computed anew; where that takes long, no more than a tenth of the time is
spent on it."""


class HeatMapCache:
    """The newest map of one app, and whether another is under way."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._lock = threading.Lock()
        self.heat: HeatMap | None = None
        self.as_of: datetime | None = None
        self.trouble = ""
        self.busy = False
        self._took = timedelta()

    def look(self) -> HeatMapCache:
        """The map as it stands; an old one is computed anew by a thread of its own, one at a time."""
        now = self._app._clock.now()
        with self._lock:
            old = self.as_of is None or now - self.as_of >= max(FRESH, 10 * self._took)
            if not old or self.busy:
                return self
            self.busy = True
        # A daemon: the server stops without waiting for a map of a hundred thousand schedules.
        threading.Thread(target=self._compute, args=(now,), name="mainspring-heatmap", daemon=True).start()
        return self

    def _compute(self, now: datetime) -> None:
        begun = self._app._clock.monotonic()
        found, trouble = self.heat, "see the log"
        try:
            found, trouble = asyncio.run(self._read(now)), ""
        except MainspringError as error:
            trouble = str(error)
        finally:
            # Whatever happened: a map that fails must not be under way for ever.
            with self._lock:
                self.heat, self.trouble, self.as_of, self.busy = found, trouble, now, False
                self._took = timedelta(seconds=self._app._clock.monotonic() - begun)

    async def _read(self, now: datetime) -> HeatMap:
        """With a store of this thread's own: a hundred thousand rows are not the event loop's business."""
        try:
            store = await self._app._store(prepare=False)
            schedules = await store.schedules.all()
            calendars = await calendars_of(store, {each.trigger for each in schedules})
        finally:
            await self._app.aclose()
        return heat_map(schedules, now, DAYS, calendars)


def heat_map_cache_of(request: Request) -> HeatMapCache:
    """The map of the app that serves this request."""
    state = request.app.state
    if not hasattr(state, "heat_map_cache"):
        state.heat_map_cache = HeatMapCache(services_of(request).app)
    found: HeatMapCache = state.heat_map_cache
    return found
