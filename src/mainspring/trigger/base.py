"""What every trigger can do."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Trigger(Protocol):
    """A rule that names instants. A pure function of the instant asked about, never of who asks or when."""

    def next_after(self, moment: datetime) -> datetime | None:
        """The first slot strictly after `moment`, aware and in UTC; None when there is no more."""

    def encode(self) -> str:
        """Canonical JSON: equal triggers give equal text, and `codec.decode` reads it back."""
