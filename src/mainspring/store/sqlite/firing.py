"""Slots written on SQLite: in several steps of one transaction, each of which sees those before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from mainspring.model.schedule import DROPPED, Chunk, Drop, Opening, Skipped
from mainspring.store.database import Row, Stamp, Transaction
from mainspring.store.declaring import NO_BREAKER, Due
from mainspring.store.rows import maybe_moment, moment
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros
from mainspring.trigger.misfire import LATE


class SQLiteFiring:
    """Firing on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fire(self, *, limit: int, breaker: int, at: Stamp) -> Chunk | None:
        async def work(tx: Transaction) -> Chunk | None:
            found = await tx.fetch("oldest_fire")
            return await _fire(tx, found[0], limit, breaker, at) if found else None

        return await self._database.within("fire", work)

    async def decide(self, tx: Transaction, due: Sequence[Due], *, at: datetime) -> int:
        made = 0
        for one in due:
            opened = {
                "spec_id": one.schedule.spec_id,
                "slot_at": one.opening.slot_at,
                "since": one.opening.since,
                "combined": self.combined(one.opening),
                "skip": one.skip,
                "note": one.opening.note,
                "previous_at": None,
            }
            key = one.schedule.id
            decided = await _write(tx, opened, after=key - 1, until=key, breaker=NO_BREAKER, at=at)
            made += sum(row["job_id"] is not None for row in decided)
        return made

    def combined(self, opening: Opening) -> str | None:
        return listed(map(micros, opening.combined)) if opening.combined else None


async def _fire(tx: Transaction, fire: Row, limit: int, breaker: int, at: Stamp) -> Chunk:
    [now] = await tx.fetch("now", at=at)
    [herd] = await tx.fetch("herd", spec_id=fire["spec_id"], last_id=fire["last_id"], limit=limit)
    which = {"spec_id": fire["spec_id"], "slot_at": fire["slot_at"]}
    opened = {name: fire[name] for name in ("since", "combined", "skip", "note", "previous_at")}
    decided = await _write(
        tx, {**which, **opened}, after=fire["last_id"], until=herd["last_id"], breaker=breaker, at=at
    )
    if herd["taken"] == limit:
        await tx.fetch("forward_fire", **which, herd_end=herd["last_id"])
    else:
        await tx.fetch("close_fire", **which)
    skipped = [row for row in decided if row["job_id"] is None]
    slot_at = moment(fire["slot_at"])
    fired = len(decided) - len(skipped)
    if fired:
        tx.hint(fired)
    return Chunk(
        slot_at=slot_at,
        fired=fired,
        skipped=len(skipped),
        late=moment(now["now"]) - slot_at,
        since=maybe_moment(fire["since"]),
        dropped=await _drops(tx, skipped),
    )


async def _write(
    tx: Transaction, opened: Mapping[str, object], *, after: int, until: int | None, breaker: int, at: Stamp
) -> Sequence[Row]:
    """Ledger rows and jobs of one opened slot, for the schedules of its spec with ids later than `after` and
    up to `until`; answers the rows."""
    [last] = await tx.fetch("reserve_ids")
    which = {"spec_id": opened["spec_id"], "slot_at": opened["slot_at"]}
    part = {**which, "last_id": after, "herd_end": until, "last_job_id": last["id"], "missed_after": LATE}
    decided = await tx.fetch(
        "write_ledger",
        **part,
        since=opened["since"],
        combined=opened["combined"],
        skip=opened["skip"],
        note=opened["note"],
        breaker=breaker,
        at=at,
    )
    counted = [row["schedule_id"] for row in decided if row["job_id"] is not None]
    if counted:
        await _replace(tx, part, at)
        await tx.fetch("fire", **part, previous_at=opened["previous_at"], at=at)
    if len(counted) < len(decided):
        counted += [row["schedule_id"] for row in decided if row["reason"] == Skipped.REQUESTED]
    await tx.fetch("count_down", ids=counted, combined=opened["combined"])
    return decided


async def _drops(tx: Transaction, skipped: Sequence[Row]) -> tuple[Drop, ...]:
    reasons = {row["schedule_id"]: Skipped(row["reason"]) for row in skipped if row["reason"] in DROPPED}
    if not reasons:
        return ()
    found = await tx.fetch("names_of", ids=list(reasons))
    return tuple(Drop(schedule=row["name"], reason=reasons[row["id"]]) for row in found)


async def _replace(tx: Transaction, part: dict[str, object], at: Stamp) -> None:
    """Cancel what the jobs about to be made take the place of."""
    replaced = [row["id"] for row in await tx.fetch("replaced_jobs", **part, at=at)]
    if replaced:
        await tx.fetch("cancel_jobs", ids=replaced, at=at)
