"""What will happen: slots, load and bursts, without a clock."""

from __future__ import annotations
