"""How the database is."""

from __future__ import annotations

from typing import Protocol

from mainspring.model.health import StoreHealth, UnreadableRow


class HealthStore(Protocol):
    """What a database tells of itself."""

    async def health(self) -> StoreHealth:
        """No more rights are needed than for everything else; what they do not suffice for is named."""

    async def set_aside(self) -> list[UnreadableRow]:
        """Move every row that cannot be read into `unreadable_rows`, whole, and answer which they were.
        Reads whole tables: for when something met such a row. Nothing is done where the schema is not this
        version's, for what we cannot read may be a newer one's."""

    async def damage(self) -> list[str] | None:
        """Read the whole file and answer what is broken in it; None for a server, which does that by itself
        and cannot be asked. Takes as long as reading the file does."""
