"""What handlers do once and no more: in transactions of ours or of their own, and as recorded steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from mainspring.errors import AnswerLost
from mainspring.model.checkpoint import Checkpoint, Recorded
from mainspring.model.job import Claim, NewJob
from mainspring.model.run import Settlement
from mainspring.store.database import Database, Stamp, reads
from mainspring.store.rows import moment, reader

T_co = TypeVar("T_co", covariant=True)

_checkpoint = reader(Checkpoint)


class Errand(Protocol[T_co]):
    """Work to be done on a connection of the caller's own, inside the transaction it is in. Whether it
    happens is decided by that transaction. `tx` is what the caller calls its connection."""

    def run(self, tx: object) -> T_co:
        """Do it on a connection that blocks."""

    async def arun(self, tx: object) -> T_co:
        """Do it on a connection that is awaited."""


class Borrower(Protocol):
    """What a store can do on callers' own connections. Nothing is opened for it."""

    def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> Errand[list[int]]:
        """As Queue.insert. Workers are hinted when the transaction commits."""

    def settle(self, settlement: Settlement, *, at: Stamp) -> Errand[bool]:
        """As Queue.settle; False when the claim named is no longer the job's."""

    def step(self, job_id: int, name: str) -> Errand[bool]:
        """As Effects.step."""

    def record_step(self, claim: Claim, name: str, *, at: Stamp) -> Errand[bool]:
        """As Effects.record_step."""


class Loan(Protocol):
    """A connection of the store's, in a transaction, for a handler to write into. It ends with `commit`
    or `rollback`."""

    @property
    def connection(self) -> object:
        """What the handler is given; it may also be passed as `tx`."""

    async def commit(self, settlement: Settlement, *, at: Stamp) -> bool:
        """Write how the run ended and commit it with whatever the handler wrote, durable on return. False,
        and nothing of all that remains, when the claim named is no longer the job's. Any error but
        AnswerLost means that nothing remains."""

    async def rollback(self) -> None:
        """Nothing that was written remains."""

    async def committed(self, settlement: Settlement, lost: AnswerLost) -> bool:
        """Whether a commit whose answer was lost has happened; that cannot change any more."""


class Lender(Protocol):
    """What each dialect does in its own way."""

    @property
    def borrower(self) -> Borrower:
        """For connections of the handlers' own."""

    async def lend(self) -> Loan:
        """Begin a transaction for a handler."""


class Effects:
    """What handlers do once and no more."""

    def __init__(self, database: Database, lender: Lender) -> None:
        self._database, self._lender = database, lender

    @property
    def borrower(self) -> Borrower:
        """For connections of the handlers' own."""
        return self._lender.borrower

    async def lend(self) -> Loan:
        """Begin a transaction for a handler."""
        return await self._lender.lend()

    @reads
    async def step(self, job_id: int, name: str) -> bool:
        """Whether a run of this job has recorded this step."""
        return bool(await self._database.fetch("step", job_id=job_id, name=name))

    @reads
    async def steps(self, job_id: int, *, at: Stamp) -> Recorded:
        """Every step that runs of this job have recorded."""
        rows = await self._database.fetch("steps", job_id=job_id, at=at)
        return Recorded(
            now=moment(rows[0]["now"]),
            checkpoints=tuple(_checkpoint(row) for row in rows if row["name"] is not None),
        )

    async def record_step(self, claim: Claim, name: str, *, value: bytes | None = None, at: Stamp) -> bool:
        """Record a step as done, with what it answered; False, and nothing changes, when the claim is no
        longer the job's, or the step is on record already. Durable on return."""
        return bool(await self._database.fetch("record_step", **step_of(claim, name, value), at=at))

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Drop older steps of jobs that are on record no more, so many jobs at a time; answer how many
        steps went."""
        gone = after = 0
        while page := await self._database.fetch("old_steps", after=after, before=before, limit=limit):
            ids = [row["job_id"] for row in page]
            known = [row["id"] for row in await self._database.fetch("known_ids", ids=ids)]
            gone += len(await self._database.fetch("prune_steps", job_ids=ids, known=known))
            after = ids[-1]
        return gone


def step_of(claim: Claim, name: str, value: bytes | None = None) -> dict[str, object]:
    """The parameters of `record_step`, without its moment."""
    return {
        "job_id": claim.job_id,
        "worker_id": claim.worker_id,
        "fence": claim.fence,
        "name": name,
        "value": value,
    }
