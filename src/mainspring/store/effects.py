"""Effects: work that handlers do exactly once, in transactions of the store or of their own, and as recorded
steps."""

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
    """Work on a connection of the caller's own, inside the caller's transaction. This transaction decides
    whether the work happens. `tx` is the connection of the caller."""

    def run(self, tx: object) -> T_co:
        """Do the work on a blocking connection."""

    async def arun(self, tx: object) -> T_co:
        """Do the work on an async connection."""


class Borrower(Protocol):
    """The calls of a store on callers' own connections. It opens no connection."""

    def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> Errand[list[int]]:
        """As Queue.insert. Workers get a hint when the transaction commits."""

    def settle(self, settlement: Settlement, *, at: Stamp) -> Errand[bool]:
        """As Queue.settle; False when the claim named is no longer the job's."""

    def step(self, job_id: int, name: str) -> Errand[bool]:
        """As Effects.step."""

    def record_step(self, claim: Claim, name: str, *, at: Stamp) -> Errand[bool]:
        """As Effects.record_step."""


class Loan(Protocol):
    """A connection of the store in a transaction, lent to a handler for its writes. The loan ends with
    `commit` or `rollback`."""

    @property
    def connection(self) -> object:
        """The connection for the handler. The handler may also pass it as `tx`."""

    async def commit(self, settlement: Settlement, *, at: Stamp) -> bool:
        """Write how the run ended, and commit it together with the writes of the handler. The commit is
        durable on return. False, and nothing is written, when the claim named is no longer the job's. Any
        error except AnswerLost means that nothing is written."""

    async def rollback(self) -> None:
        """Undo all writes."""

    async def committed(self, settlement: Settlement, lost: AnswerLost) -> bool:
        """Whether a commit whose answer was lost has happened. The answer cannot change after this call."""


class Lender(Protocol):
    """Transactions for handlers, which each dialect makes in its own way."""

    @property
    def borrower(self) -> Borrower:
        """For connections of the handlers' own."""

    async def lend(self) -> Loan:
        """Begin a transaction for a handler."""


class Effects:
    """Work that handlers do exactly once."""

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
        """Record a step as done, with its answer. False, and nothing changes, when the claim is no longer the
        job's, or the step is on record already. The record is durable on return."""
        return bool(await self._database.fetch("record_step", **step_of(claim, name, value), at=at))

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Delete older steps of jobs that are not on record any more, `limit` jobs at a time; answer how many
        steps were deleted."""
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
