"""Rules that are broken become alerts, and alerts become messages."""

from __future__ import annotations
