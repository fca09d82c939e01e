"""Questions and orders about workflows."""

from __future__ import annotations
