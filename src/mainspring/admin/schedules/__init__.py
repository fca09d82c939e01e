"""What operators ask and order of schedules."""

from __future__ import annotations
