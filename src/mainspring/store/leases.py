"""Leases that user code takes by name."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.process import Held, Lease, LeaseInfo
from mainspring.store.database import Database, Stamp, reads
from mainspring.store.rows import length, moment, reader

_lease = reader(Lease, given=["name", "holder_id"])
_info = reader(LeaseInfo)


class Leases:
    """Leases, with one holder at a time for each name. Every write is durable on return. Otherwise a crash
    could undo a renewal, and another holder could take the lease before its end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire(
        self, name: str, *, holder_id: int, holder: str, ttl: timedelta, at: Stamp
    ) -> Lease | Held:
        """Take the lease of this name until now + ttl, if no other holder has it. The token is one higher
        than the last token. A holder that asks again while it has the lease gets the same token: this helps
        after a lost answer."""
        while True:
            granted = await self._database.fetch(
                "acquire_lease", name=name, holder_id=holder_id, holder=holder, ttl=ttl, at=at
            )
            for row in granted:
                return _lease(row, name=name, holder_id=holder_id)
            for row in await self._database.fetch("lease_holder", name=name, at=at):
                return Held(
                    name=name,
                    holder=row["holder"],
                    until=moment(row["expires_at"]),
                    remaining=length(row["remaining"]),
                )
            # The row that refused the lease has been deleted by an operator. Ask again.

    async def renew(self, name: str, *, holder_id: int, token: int, ttl: timedelta, at: Stamp) -> bool:
        """Renew the lease until now + ttl. False, and nothing changes, if the lease has ended or has another
        holder."""
        renewed = await self._database.fetch(
            "renew_lease", name=name, holder_id=holder_id, token=token, ttl=ttl, at=at
        )
        return bool(renewed)

    async def release(self, name: str, *, holder_id: int, token: int, at: Stamp) -> bool:
        """End the lease now, so that another holder can take it. False, and nothing changes, if the lease has
        ended or has another holder. The token is kept."""
        released = await self._database.fetch(
            "release_lease", name=name, holder_id=holder_id, token=token, at=at
        )
        return bool(released)

    @reads
    async def all(self, *, at: Stamp) -> list[LeaseInfo]:
        """Every lease that was ever taken, by name, held or not."""
        return [_info(row) for row in await self._database.fetch("leases", at=at)]
