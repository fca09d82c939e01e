"""What a process tells monitors of itself: metrics, probes, and words to the service manager."""

from __future__ import annotations
