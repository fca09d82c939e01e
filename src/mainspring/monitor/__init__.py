"""What a process reports to machines: metrics, probes, and messages to the service manager."""

from __future__ import annotations
