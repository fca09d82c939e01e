"""Questions and orders about schedules."""

from __future__ import annotations
