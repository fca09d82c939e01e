"""From one primary to very many schedules: what is measured, and what follows from it."""

from __future__ import annotations
