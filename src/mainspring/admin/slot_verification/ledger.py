"""The ledger of a schedule, page by page."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.schedule import Slot
from mainspring.store.store import Store

PAGE = 1000


async def ledger(
    store: Store, name: str, *, start: datetime, end: datetime | None = None, most: int
) -> list[Slot]:
    """Rows from `start` on and before `end`, newest first, about `most` of them at most."""
    found: list[Slot] = []
    before = end
    while len(found) < most:
        page = await store.slots.of(name, start=start, before=before, limit=PAGE)
        if len(page) < PAGE:
            return found + page
        # A slot may have two rows, of schedules that had the name one after the other: the page may end
        # between them, so its last slot is read again with the next.
        last = page[-1].slot_at
        whole = [row for row in page if row.slot_at > last]
        found += whole
        before = whole[-1].slot_at if whole else last
    return found
