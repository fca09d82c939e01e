"""How the database is."""

from __future__ import annotations

from typing import Protocol

from mainspring.model.health import StoreHealth


class HealthStore(Protocol):
    """What a database tells of itself."""

    async def health(self) -> StoreHealth:
        """No more rights are needed than for everything else; what they do not suffice for is named."""
