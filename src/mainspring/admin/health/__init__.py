"""What is wrong, and how everything stands."""

from __future__ import annotations
