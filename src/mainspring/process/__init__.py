"""One process: its loops, its heartbeat, its start and its end."""

from __future__ import annotations
