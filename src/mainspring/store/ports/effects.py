"""What handlers do once and no more, on connections of their own or of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from mainspring.errors import AnswerLost
from mainspring.model.checkpoint import Recorded
from mainspring.model.job import Claim, NewJob
from mainspring.model.settlement import Settlement
from mainspring.store.ports.stamp import Stamp

T_co = TypeVar("T_co", covariant=True)


class Errand(Protocol[T_co]):
    """Something to be done on a connection of the caller's own, inside the transaction it is in. Whether it
    happens is decided by that transaction. `tx` is what the caller calls its connection."""

    def run(self, tx: object) -> T_co:
        """Do it on a connection that blocks."""

    async def arun(self, tx: object) -> T_co:
        """Do it on one that is awaited."""


class Borrower(Protocol):
    """What a store can do on other people's connections. Nothing is opened for it."""

    def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> Errand[list[int]]:
        """As JobQueue.insert. Workers are hinted when the transaction commits."""

    def settle(self, settlement: Settlement, *, at: Stamp) -> Errand[bool]:
        """As JobQueue.settle; False when the claim named is no longer the job's."""

    def step(self, job_id: int, name: str) -> Errand[bool]:
        """As EffectStore.step."""

    def record_step(self, claim: Claim, name: str, *, at: Stamp) -> Errand[bool]:
        """As EffectStore.record_step."""


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


class EffectStore(Protocol):
    """What handlers do once and no more."""

    @property
    def borrower(self) -> Borrower:
        """For connections of the handlers' own."""

    async def lend(self) -> Loan:
        """Begin a transaction for a handler."""

    async def step(self, job_id: int, name: str) -> bool:
        """Whether a run of this job has recorded this step."""

    async def steps(self, job_id: int, *, at: Stamp) -> Recorded:
        """Every step that runs of this job have recorded."""

    async def record_step(self, claim: Claim, name: str, *, value: bytes | None = None, at: Stamp) -> bool:
        """Record a step as done, with what it answered; False, and nothing changes, when the claim is no
        longer the job's, or the step is on record already. Durable on return."""
