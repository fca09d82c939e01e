"""What operators should know of first."""

from __future__ import annotations

from typing import Protocol

from mainspring.model.trouble import Facts, Watched
from mainspring.store.ports.stamp import Stamp


class WatchStore(Protocol):
    """One bounded look at everything that alerts, the overview and `status` judge."""

    async def watch(self, watched: Watched, *, at: Stamp) -> Facts:
        """What stands out now, by the store's clock."""
