"""Requests that may come twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.model.job import NewJob
from mainspring.model.request import Answered, RequestKey
from mainspring.store.ports.stamp import Stamp


class RequestStore(Protocol):
    """Answers that are remembered for those who ask again."""

    async def insert_once(self, request: RequestKey, jobs: Sequence[NewJob], *, at: Stamp) -> Answered:
        """As JobQueue.insert_unique, and what was answered is on record in the same transaction: the same
        request gets the same answer for at least a day, however many ask at once. Raises KeyReused where
        the key stands for something else. Pruned by JobQueue.prune."""
