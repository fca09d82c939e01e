"""What happens, as typed events, and how it is told: log lines, traces, the progress of loops."""

from __future__ import annotations
