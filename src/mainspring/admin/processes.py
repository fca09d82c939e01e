"""Processes that work on the database, and leases of names."""

from __future__ import annotations

from mainspring.admin.order import Noun, blocking
from mainspring.model.process import LeaseInfo, ProcessInfo


class Processes(Noun):
    """Workers and schedulers of one store."""

    async def aall(self) -> list[ProcessInfo]:
        """Every stored process, alive or not."""
        return await (await self._store()).processes.all(at=self._stamp)

    all = blocking(aall)


class Leases(Noun):
    """Names that were leased with `app.lease`."""

    async def aall(self) -> list[LeaseInfo]:
        """Every name that was ever leased, in order of name, with or without a holder."""
        return await (await self._store()).leases.all(at=self._stamp)

    all = blocking(aall)
