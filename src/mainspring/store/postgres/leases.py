"""Leases of user code on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.lease import Held, Lease, LeaseInfo
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database


class PostgresLeases:
    """LeaseStore on PostgreSQL. Every write is durable: a renewal that a crash of the server undid
    would let another holder in before the first one's time is over."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire(
        self, name: str, *, holder_id: int, holder: str, ttl: timedelta, at: Stamp
    ) -> Lease | Held:
        while True:
            granted = await self._database.fetch(
                "acquire_lease", name=name, holder_id=holder_id, holder=holder, ttl=ttl, at=at
            )
            for row in granted:
                return Lease(name=name, holder_id=holder_id, **dict(row))
            for row in await self._database.fetch("lease_holder", name=name, at=at):
                return Held(
                    name=name, holder=row["holder"], until=row["expires_at"], remaining=row["remaining"]
                )
            # Refused by a row that is gone: somebody deleted it by hand. Ask again.

    async def renew(self, name: str, *, holder_id: int, token: int, ttl: timedelta, at: Stamp) -> bool:
        renewed = await self._database.fetch(
            "renew_lease", name=name, holder_id=holder_id, token=token, ttl=ttl, at=at
        )
        return bool(renewed)

    async def release(self, name: str, *, holder_id: int, token: int, at: Stamp) -> bool:
        released = await self._database.fetch(
            "release_lease", name=name, holder_id=holder_id, token=token, at=at
        )
        return bool(released)

    async def leases(self, *, at: Stamp) -> list[LeaseInfo]:
        return [LeaseInfo(**dict(row)) for row in await self._database.fetch("leases", at=at)]
