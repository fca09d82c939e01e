"""What happens, as typed events, and what is made of them: log lines, traces, the progress of loops."""

from __future__ import annotations
