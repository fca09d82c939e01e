"""What a job costs in counts that no machine changes: instructions, calls, statements, bytes of log."""

from __future__ import annotations
