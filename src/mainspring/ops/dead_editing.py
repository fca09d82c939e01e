"""Giving a dead letter other arguments; those it had stay on record."""

from __future__ import annotations

from collections.abc import Callable

from mainspring.clock import Clock
from mainspring.declare import payload
from mainspring.errors import NotFound
from mainspring.model.failure import Failure
from mainspring.model.history import DeadFilter, DeadJob
from mainspring.store.ports import Store

Arguments = tuple[list[object], dict[str, object]]
Change = Callable[[DeadJob, Arguments], Arguments]
"""Given a letter and its arguments, answers those it should have, or raises."""
_TRIES = 3


class Editing:
    """Edits of one person."""

    def __init__(self, store: Store, clock: Clock, *, author: str) -> None:
        self._store = store
        self._clock = clock
        self._author = author

    async def edit(self, job_id: int, change: Change) -> tuple[DeadJob, bool]:
        """Change the arguments of one dead letter; answer it as it is then, and whether that is new."""
        for _ in range(_TRIES):
            letter = await self._letter(job_id)
            args, kwargs = change(letter, payload.decode(letter.payload))
            changed = payload.encode(args, kwargs, field=letter.task)
            if changed == letter.payload:
                return letter, False
            note = Failure(type="Edited", message=f"its arguments were edited by {self._author}")
            # Somebody else may have been faster; then the change is made to what they left.
            if await self._store.dead_letters.edit(
                job_id, payload=changed, expected=letter.payload, note=note, at=self._clock.stamp()
            ):
                return await self._letter(job_id), True
        raise NotFound("dead letter", job_id)

    async def _letter(self, job_id: int) -> DeadJob:
        found = await self._store.dead_letters.find(DeadFilter(ids=(job_id,), limit=1))
        if not found:
            raise NotFound("dead letter", job_id)
        return found[0]
