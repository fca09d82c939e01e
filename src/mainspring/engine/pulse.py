"""The heart's own thread, with its own event loop and its own store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from mainspring.engine.heart import Heart
from mainspring.engine.loop import Cycle
from mainspring.engine.progress import Progress
from mainspring.entropy import Entropy
from mainspring.errors import StoreError
from mainspring.store.store import Store
from mainspring.telemetry import StoreTrouble, Telemetry
from mainspring.waiting import NOW, until

STOP_WITHIN = timedelta(seconds=10)


class Pulse:
    """Beats for one or more members until it is stopped, then ends their leases."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        hearts: Callable[[Callable[[], Store]], Sequence[Heart]],
        entropy: Entropy,
        telemetry: Telemetry,
        *,
        owns_store: bool = True,
        progress: Progress | None = None,
    ) -> None:
        self._open_store = open_store
        self._owns_store = owns_store
        self._progress = progress
        self._make_hearts = hearts
        self._entropy = entropy
        self._telemetry = telemetry
        self._thread = threading.Thread(target=self._run, name="mainspring-heart", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cycles: list[Cycle] = []
        self._ready = threading.Event()
        self._owner: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._clean = False
        self._hearts: Sequence[Heart] = ()
        self._left = False

    def start(self) -> None:
        """Begin to beat. Call it on the event loop that will also stop it."""
        self._owner = asyncio.get_running_loop()
        self._thread.start()
        self._ready.wait()

    async def stop(self, *, clean: bool) -> None:
        """End the leases; `clean` promises that no claim is left under them. If the store does not
        answer, they run out by themselves."""
        self._clean = clean
        with suppress(RuntimeError):  # its event loop has ended already
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._stop_cycles)
        # Not by a helper thread: user code may have taken all of the default executor's.
        if await until(self._ended, STOP_WITHIN):
            self._thread.join()

    def leave(self, within: timedelta) -> bool:
        """End the leases at once, with claims left under them, from any thread; answer whether the store has
        answered. For a process that is ended where it stands: nothing of ours may go on after this."""
        if self._loop is None:
            return False
        leaving = self._leave()
        try:
            asyncio.run_coroutine_threadsafe(leaving, self._loop).result(within.total_seconds())
        except RuntimeError:  # its event loop has ended, and with it the leases, or it was no use
            leaving.close()
            return self._left
        except Exception:  # noqa: BLE001 - whatever it is, they run out by themselves
            return False
        return True

    async def _leave(self) -> None:
        for heart in self._hearts:
            await heart.leave(clean=self._clean)
        self._left = True

    def _stop_cycles(self) -> None:
        for cycle in self._cycles:
            cycle.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._beat())
        finally:
            self._ready.set()  # whatever went wrong, nobody may wait for it for ever
            with suppress(RuntimeError):  # the owner did not wait for us
                if self._owner is not None:
                    self._owner.call_soon_threadsafe(self._ended.set)

    async def _beat(self) -> None:
        self._loop = asyncio.get_running_loop()
        store = self._open_store()
        hearts = self._hearts = self._make_hearts(lambda: store)
        self._cycles = [
            Cycle(
                heart,
                self._telemetry,
                self._entropy,
                longest=heart.retry_within,
                progress=self._progress,
            )
            for heart in hearts
        ]
        self._ready.set()
        try:
            await asyncio.gather(*(cycle.run() for cycle in self._cycles))
            await self._leave()
        except StoreError as error:
            self._telemetry.emit(StoreTrouble.of("heart", error, NOW))
        finally:
            if self._owns_store:
                await store.close()
