"""Leases of user code."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.process import Held, Lease, LeaseInfo
from mainspring.store.database import Database, Stamp, reads
from mainspring.store.rows import length, moment, reader

_lease = reader(Lease, given=["name", "holder_id"])
_info = reader(LeaseInfo)


class Leases:
    """One holder at a time for each name. Every write is durable on return: a renewal that a crash undid
    would let another holder in before the first one's time is over."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire(
        self, name: str, *, holder_id: int, holder: str, ttl: timedelta, at: Stamp
    ) -> Lease | Held:
        """Take the lease of this name until now + ttl, if nobody else holds it, with a token one above
        the last. A holder that asks again while it has the lease is answered the same token: for after
        an answer was lost."""
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
            # Refused by a row that is gone: it was deleted by hand. Ask again.

    async def renew(self, name: str, *, holder_id: int, token: int, ttl: timedelta, at: Stamp) -> bool:
        """Hold it until now + ttl; False, and nothing changes, if it has ended or is another's."""
        renewed = await self._database.fetch(
            "renew_lease", name=name, holder_id=holder_id, token=token, ttl=ttl, at=at
        )
        return bool(renewed)

    async def release(self, name: str, *, holder_id: int, token: int, at: Stamp) -> bool:
        """End it now, so that another may have it; False, and nothing changes, if it has ended or is
        another's. The token is kept."""
        released = await self._database.fetch(
            "release_lease", name=name, holder_id=holder_id, token=token, at=at
        )
        return bool(released)

    @reads
    async def all(self, *, at: Stamp) -> list[LeaseInfo]:
        """Every name that was ever leased, by name, held or not."""
        return [_info(row) for row in await self._database.fetch("leases", at=at)]
