"""Pages of long lists: every call looks at a bounded number of rows, however many there are."""

from __future__ import annotations

from typing import Protocol

from mainspring.model.history import JobFilter
from mainspring.model.pages import JobPage
from mainspring.store.ports.stamp import Stamp


class PageStore(Protocol):
    """Lists for people to leaf through."""

    async def jobs_page(self, which: JobFilter, *, at: Stamp) -> JobPage:
        """Jobs, newest id first, of whatever states the filter names."""
