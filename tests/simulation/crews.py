"""Hosts that workers run on: the engine's own loops, ticked by hand, over a wire that can break."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mainspring.app import Mainspring
from mainspring.config import WorkerConfig
from mainspring.entropy import SeededEntropy
from mainspring.model.process import NewProcess, Role
from mainspring.process.heartbeat import Heartbeat
from mainspring.scheduler.housekeeping import Reaper, Sweeper
from mainspring.scheduler.workflow_resolver import WorkflowResolver
from mainspring.telemetry.events import Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.worker.worker import Worker
from tests.simulation.hosts import Wire

LOOPS = ("heart", "claimer", "settler", "resolver", "reaper", "sweeper")


class WorkHost:
    """One worker on one machine. A tick of any of its loops may be its last."""

    def __init__(
        self, app: Mainspring, store: Any, clock: ManualClock, telemetry: Telemetry, *, seed: int
    ) -> None:
        self.wire = Wire(store, clock)
        wired: Any = self.wire
        entropy, config = SeededEntropy(seed), WorkerConfig(concurrency=8, threads=1)
        self.worker = Worker(wired, app._registry, config, clock=clock, entropy=entropy, telemetry=telemetry)
        self._freed = asyncio.Event()
        self.worker.signals.run_ended.connect(self._freed.set)
        self._loops: dict[str, Any] = {
            "heart": Heartbeat(
                lambda: wired,
                NewProcess(id=0, role=Role.WORKER, name=f"w{seed}"),
                self.worker.membership,
                self.worker,
                lease=config.lease,
                every=config.heartbeat,
                clock=clock,
                entropy=entropy,
                telemetry=telemetry,
            ),
            "claimer": self.worker.claimer,
            "settler": self.worker.result_writer,
            "resolver": WorkflowResolver(wired.workflows, clock, entropy, telemetry, poll=config.poll),
            "reaper": Reaper(wired, clock, entropy, telemetry),
            "sweeper": Sweeper(wired, clock, entropy, telemetry),
        }

    async def tick(self, loops: Sequence[str]) -> None:
        """One pass of each of these, and whatever handlers do meanwhile. Raises Died if it died."""
        for name in loops:
            if name != "claimer" or self.worker.membership.id is not None:
                await self._loops[name].tick()
            await self._let_handlers_end()

    async def _let_handlers_end(self) -> None:
        while self.worker.active_runs.running:
            self._freed.clear()
            await self._freed.wait()

    async def close(self) -> None:
        """The machine is gone, and everything that was on it."""
        self.worker.close()
