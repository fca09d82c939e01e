"""Processes that work on the database, and leases of names."""

from __future__ import annotations

from mainspring.admin.order import Noun, blocking
from mainspring.model.process import LeaseInfo, ProcessInfo


class Processes(Noun):
    """Workers, schedulers and servers on record."""

    async def aall(self) -> list[ProcessInfo]:
        """Every process on record, alive or not."""
        return await (await self._store()).processes.all(at=self._stamp)

    all = blocking(aall)


class Leases(Noun):
    """Names that were leased with `app.lease`."""

    async def aall(self) -> list[LeaseInfo]:
        """Every name that was ever leased, by name, held or not."""
        return await (await self._store()).leases.all(at=self._stamp)

    all = blocking(aall)
