"""Leases of user code on SQLite."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.lease import Held, Lease, LeaseInfo
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import MICROSECOND, moment, span


class SQLiteLeases:
    """LeaseStore on SQLite. Every write is durable: a renewal that a crash of the machine undid
    would let another holder in before the first one's time is over."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire(
        self, name: str, *, holder_id: int, holder: str, ttl: timedelta, at: Stamp
    ) -> Lease | Held:
        def work(session: Session) -> Lease | Held:
            now = session.now(at)
            for row in session.rows(
                "acquire_lease", name=name, holder_id=holder_id, holder=holder, ttl=span(ttl), now=now
            ):
                return Lease(
                    name=name,
                    token=row["token"],
                    holder_id=holder_id,
                    acquired_at=moment(row["acquired_at"]),
                    expires_at=moment(row["expires_at"]),
                )
            row = session.row("lease_holder", name=name, now=now)
            return Held(
                name=name,
                holder=row["holder"],
                until=moment(row["expires_at"]),
                remaining=row["remaining"] * MICROSECOND,
            )

        return await self._database.write(work)

    async def renew(self, name: str, *, holder_id: int, token: int, ttl: timedelta, at: Stamp) -> bool:
        def work(session: Session) -> bool:
            changed = session.change(
                "renew_lease",
                name=name,
                holder_id=holder_id,
                token=token,
                ttl=span(ttl),
                now=session.now(at),
            )
            return bool(changed)

        return await self._database.write(work)

    async def release(self, name: str, *, holder_id: int, token: int, at: Stamp) -> bool:
        def work(session: Session) -> bool:
            changed = session.change(
                "release_lease", name=name, holder_id=holder_id, token=token, now=session.now(at)
            )
            return bool(changed)

        return await self._database.write(work)

    async def leases(self, *, at: Stamp) -> list[LeaseInfo]:
        def work(session: Session) -> list[LeaseInfo]:
            return [
                LeaseInfo(
                    name=row["name"],
                    token=row["token"],
                    holder=row["holder"],
                    acquired_at=moment(row["acquired_at"]),
                    expires_at=moment(row["expires_at"]),
                    held=bool(row["held"]),
                )
                for row in session.rows("leases", now=session.now(at))
            ]

        return await self._database.read(work)
