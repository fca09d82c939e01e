"""When a call happens."""

from __future__ import annotations

from mainspring.store.database import Stamp

__all__ = ["Stamp"]
