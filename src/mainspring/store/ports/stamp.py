"""When a call happens."""

from __future__ import annotations

from datetime import datetime

Stamp = datetime | None
"""The clock's; None means that the database's own clock decides."""
