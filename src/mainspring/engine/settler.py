"""Writes how runs ended, in batches: everything that came in while the last batch was under way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec

from mainspring.clock import Clock
from mainspring.errors import AnswerLost, StoreError, StoreFull, StoreUnavailable
from mainspring.model.failure import Failure
from mainspring.model.job import Claim
from mainspring.model.settlement import Settlement, Verdict
from mainspring.store.ports import JobQueue
from mainspring.telemetry import RunEnded, SettlementRefused, Telemetry

BATCH = 1000
IDLE = timedelta(seconds=60)

Entry = tuple[Claim, Settlement]


class Settler:
    """A buffer and the loop that empties it. Nothing leaves it before the store has answered."""

    name = "settler"

    def __init__(self, queue: JobQueue, clock: Clock, telemetry: Telemetry) -> None:
        self._queue = queue
        self._clock = clock
        self._telemetry = telemetry
        self._waiting: list[Entry] = []
        self._batch: list[Entry] = []
        self._in_doubt = False
        self.on_arrival: Callable[[], None] = lambda: None
        self.on_written: Callable[[], None] = lambda: None

    @property
    def pending(self) -> int:
        """Settlements that the store has not yet answered for."""
        return len(self._waiting) + len(self._batch)

    def put(self, claim: Claim, settlement: Settlement) -> None:
        """Have this written soon."""
        self._waiting.append((claim, settlement))
        self.on_arrival()

    async def tick(self) -> timedelta:
        if not self._batch:
            self._batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        if not self._batch:
            return IDLE
        refused = set(await self._write([settlement for _, settlement in self._batch]))
        batch, self._batch, self._in_doubt = self._batch, [], False
        for claim, settlement in batch:
            self._tell(claim, settlement, refused=settlement.job_id in refused)
        self.on_written()
        return timedelta() if self._waiting else IDLE

    async def _write(self, settlements: list[Settlement]) -> list[int]:
        try:
            refused = await self._queue.settle(settlements, at=self._clock.stamp())
        except AnswerLost:
            # The batch stays. The next pass writes it again; what is then refused because the
            # first write did arrive is told from what was lost by the run on record.
            self._in_doubt = True
            raise
        except (StoreUnavailable, StoreFull):
            raise
        except StoreError as error:
            return await self._write_singly(settlements, error)
        if refused and self._in_doubt:
            named = set(refused)
            arrived = set(await self._queue.recorded([s for s in settlements if s.job_id in named]))
            refused = [job_id for job_id in refused if job_id not in arrived]
        return refused

    async def _write_singly(self, settlements: list[Settlement], error: StoreError) -> list[int]:
        """One settlement that the store cannot take must not hold up the others, nor its own job."""
        if len(settlements) > 1:
            refused = []
            for settlement in settlements:
                refused += await self._write([settlement])
            return refused
        return await self._queue.settle([_plain(settlements[0], error)], at=self._clock.stamp())

    def _tell(self, claim: Claim, settlement: Settlement, *, refused: bool) -> None:
        if refused:
            self._telemetry.emit(
                SettlementRefused(
                    job_id=claim.job_id, task=claim.task, fence=claim.fence, verdict=settlement.verdict
                )
            )
            return
        self._telemetry.emit(
            RunEnded(
                job_id=claim.job_id,
                task=claim.task,
                attempt=claim.attempt,
                verdict=settlement.verdict,
                took=settlement.took,
                delay=settlement.delay,
                failure=settlement.failure,
            )
        )


def _plain(settlement: Settlement, error: StoreError) -> Settlement:
    failure = Failure(type="StoreError", message=f"the run's outcome could not be stored: {error}"[:1000])
    verdict = Verdict.DEAD if settlement.verdict is Verdict.DEAD else Verdict.FAILED
    return msgspec.structs.replace(settlement, verdict=verdict, failure=failure, result=None)
