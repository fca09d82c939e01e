"""How fast, on this machine, today. Compare figures of one run; across runs machines differ."""

from __future__ import annotations
