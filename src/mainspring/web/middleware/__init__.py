"""What every request and every answer goes through."""

from __future__ import annotations
