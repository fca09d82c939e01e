"""What will happen: slots, load and herds, without a clock."""

from __future__ import annotations
