"""Writes how runs ended, in batches: everything that came in while the last batch was under way."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec

from mainspring.clock import Clock
from mainspring.errors import AnswerLost, StoreError, StoreFull, StoreUnavailable
from mainspring.model.job import Claim, Failure, JobName, Whereabouts
from mainspring.model.run import Reason, Settlement, Verdict
from mainspring.signals import Signals
from mainspring.store.queue import Queue
from mainspring.telemetry.events import Event, JobsQuarantined, RunEnded, SettlementRefused, Telemetry

BATCH = 1000
HEAVY = 8 * 1024 * 1024
"""Bytes of results and logs from which on a batch is cut: one statement has to carry them all."""
ROOM = 2 * BATCH
"""Settlements that may wait to be written: enough that runs go on while a batch is synced to the disk, few
enough that little is run again if we die meanwhile."""
IDLE = timedelta(seconds=60)

Entry = tuple[Claim, Settlement]


class ResultWriter:
    """A buffer and the loop that empties it. Nothing leaves it before the store has answered."""

    name = "result_writer"

    def __init__(self, queue: Queue, clock: Clock, telemetry: Telemetry, signals: Signals) -> None:
        self._queue = queue
        self._clock = clock
        self._telemetry = telemetry
        self._signals = signals
        self._waiting: list[Entry] = []
        self._batch: list[Entry] = []
        self._in_doubt = False
        self._flows = True
        """Whether the last batch was written."""
        self._weight = 0
        self._errors: dict[tuple[int, int], BaseException] = {}
        """What handlers raised whose settlement is not written yet, by (job, fence)."""
        self.counting = False
        """Whether to count the jobs that the store has taken back unfinished."""
        self.given_back = 0

    @property
    def pending(self) -> int:
        """Settlements that the store has not yet answered for."""
        return len(self._waiting) + len(self._batch)

    def room(self, slots: int) -> int:
        """How many more runs may be begun before some are written: those that wait press back. While nothing
        can be written, that is as many again as there are execution slots."""
        if self._weight >= HEAVY:
            return 0
        return (ROOM if self._flows else 2 * slots) - self.pending

    def claims(self) -> set[tuple[int, int]]:
        """The (job, fence) pairs of those settlements."""
        return {(claim.job_id, claim.fence) for claim, _ in (*self._batch, *self._waiting)}

    def raised(self, claim: Claim, error: BaseException) -> None:
        """What the handler of the settlement that is put next raised: it goes into the same event."""
        self._errors[claim.job_id, claim.fence] = error

    def put(self, claim: Claim, settlement: Settlement) -> None:
        """Have this written soon."""
        self._waiting.append((claim, settlement))
        if settlement.result is not None or settlement.log is not None:
            self._weight += _weight(settlement)
        if len(self._waiting) == 1:
            self._signals.result_waits.send()  # of those behind it, the loop knows: it leaves none waiting

    def tell(self, claim: Claim, settlement: Settlement) -> None:
        """Say that this one is written: by the handler's own transaction."""
        self._telemetry.emit_all(_told(claim, settlement))
        if claim.workflow_id is not None:
            self._signals.step_ended.send()

    async def tick(self) -> timedelta:
        room = self._apart(BATCH - len(self._batch))
        if self._weight:
            room = self._bearable(room)
        self._batch, self._waiting = self._batch + self._waiting[:room], self._waiting[room:]
        if not self._batch:
            return IDLE
        try:
            await self._written()
        except BaseException:
            self._flows = False
            raise
        self._flows = True
        self._in_doubt = False
        return timedelta() if self._waiting else IDLE

    async def _written(self) -> None:
        try:
            await self._write(self._batch)
        except (AnswerLost, StoreUnavailable, StoreFull):
            raise
        except StoreError:
            await self._write_singly()

    def _apart(self, room: int) -> int:
        """How many of those that wait may join the batch: not a second one of the same job. A worker that
        lost its lease may have run a job again before the store would hear of the first time; the store
        knows settlements by their jobs."""
        jobs = {settlement.job_id for _, settlement in self._batch}
        for taken, (_, settlement) in enumerate(self._waiting[:room]):
            if settlement.job_id in jobs:
                return taken
            jobs.add(settlement.job_id)
        return room

    def _bearable(self, room: int) -> int:
        """How many of those that wait may join the batch; it is never left empty."""
        weight = sum(_weight(settlement) for _, settlement in self._batch)
        taken = 0
        for _, settlement in self._waiting[:room]:
            weight += _weight(settlement)
            if weight > HEAVY and (taken or self._batch):
                break
            self._weight -= _weight(settlement)
            taken += 1
        return taken

    async def _write(self, entries: list[Entry]) -> None:
        """All of these in one transaction; they leave the batch once the store has answered."""
        settlements = [settlement for _, settlement in entries]
        try:
            refused = set(await self._queue.settle(settlements, at=self._clock.stamp()))
            if refused and self._in_doubt:
                # Refused because the first write did arrive: then the run is on record. A claim that never
                # ran leaves no run, and its settlement is not missed.
                named = [s for s in settlements if s.job_id in refused]
                refused -= {s.job_id for s in named if not s.ran} | set(await self._queue.recorded(named))
        except (AnswerLost, asyncio.CancelledError):
            # The batch stays; the next pass writes it again.
            self._in_doubt = True
            raise
        # A new list each time: `tick` may be handed the old one.
        gone = {id(settlement) for settlement in settlements}
        self._batch = [entry for entry in self._batch if id(entry[1]) not in gone]
        if self.counting:
            self.given_back += sum(
                s.verdict is Verdict.RELEASED and s.job_id not in refused for s in settlements
            )
        where = await self._whereabouts(refused) if refused else {}
        errors = self._errors
        told: list[Event] = []
        for claim, settlement in entries:
            if claim.job_id in refused:
                told.append(_refused(claim, settlement, where.get(claim.job_id)))
                errors.pop((claim.job_id, claim.fence), None)
            else:
                error = errors.pop((claim.job_id, claim.fence), None) if errors else None
                told += _told(claim, settlement, error)
        self._telemetry.emit_all(told)
        self._signals.results_written.send()
        if any(claim.limited for claim, _ in entries):
            self._signals.limit_freed.send()
        if any(claim.workflow_id is not None or s.start is not None for claim, s in entries):
            self._signals.step_ended.send()

    async def _whereabouts(self, job_ids: set[int]) -> dict[int, Whereabouts]:
        """Of jobs that are not ours any more, for the log: it goes without if the store does not say."""
        try:
            found = await self._queue.whereabouts(sorted(job_ids))
        except StoreError:
            return {}
        return {each.job_id: each for each in found}

    async def _write_singly(self) -> None:
        """One settlement that the store cannot take must not hold up the others, nor its own job."""
        last: StoreError | None = None
        for claim, settlement in list(self._batch):
            try:
                await self._write([(claim, settlement)])
                continue
            except (AnswerLost, StoreUnavailable, StoreFull):
                raise
            except StoreError as error:
                if not _could_be_at_fault(settlement):
                    last = error  # whatever is wrong is the store's: it stays, and the others go on
                    continue
                plain = _plain(claim, settlement, error)
            self._exchange(settlement, plain)
            try:
                await self._write([(claim, plain)])
            except AnswerLost:
                raise
            except StoreError as error:
                # Not even that, so it was not the handler's doing: it stays as it was.
                self._exchange(plain, settlement)
                if isinstance(error, StoreUnavailable | StoreFull):
                    raise
                last = error
        if last is not None:
            raise last

    def _exchange(self, old: Settlement, new: Settlement) -> None:
        self._batch = [(claim, new if each is old else each) for claim, each in self._batch]


def _refused(claim: Claim, settlement: Settlement, where: Whereabouts | None) -> Event:
    """What is to be said of one that came too late."""
    return SettlementRefused(
        job_id=claim.job_id,
        task=claim.task,
        fence=claim.fence,
        verdict=settlement.verdict,
        claim=claim,
        whereabouts=where,
    )


def _told(claim: Claim, settlement: Settlement, error: BaseException | None = None) -> list[Event]:
    """What is to be said of a settlement that is written."""
    ended = RunEnded(
        job_id=claim.job_id,
        task=claim.task,
        attempt=claim.attempt,
        verdict=settlement.verdict,
        took=settlement.took,
        delay=settlement.delay,
        failure=settlement.failure,
        reason=settlement.reason,
        awaits=settlement.awaits,
        schedule_id=claim.schedule_id,
        slot_at=claim.slot_at,
        trace=claim.trace,
        queue=claim.queue,
        waited=claim.waited,
        workflow_id=claim.workflow_id,
        error=error,
    )
    if settlement.reason is None or settlement.reason is not Reason.CRASHED:
        return [ended]
    name = JobName(job_id=claim.job_id, task=claim.task, queue=claim.queue)
    return [ended, JobsQuarantined(job_ids=(claim.job_id,), jobs=(name,))]


def _weight(settlement: Settlement) -> int:
    return len(settlement.result or b"") + len(settlement.log or "")


def _could_be_at_fault(settlement: Settlement) -> bool:
    """Whether it holds anything of a handler's that the store might not be able to take."""
    carried = (settlement.result, settlement.log, settlement.failure, settlement.start)
    return any(each is not None for each in carried)


def _plain(claim: Claim, settlement: Settlement, error: StoreError) -> Settlement:
    if settlement.verdict in (Verdict.RELEASED, Verdict.SNOOZED):
        return msgspec.structs.replace(settlement, log=None)  # it must not cost an attempt
    failure = Failure(type="StoreError", message=f"the run's outcome could not be stored: {error}"[:1000])
    if settlement.verdict is not Verdict.SUCCEEDED:
        return msgspec.structs.replace(settlement, failure=failure, log=None)
    last = claim.attempt >= claim.max_attempts
    verdict, reason = (Verdict.DEAD, Reason.FAILED) if last else (Verdict.FAILED, None)
    return msgspec.structs.replace(
        settlement, verdict=verdict, failure=failure, result=None, reason=reason, log=None
    )
