"""Who may come in, and what they ordered."""

from __future__ import annotations
