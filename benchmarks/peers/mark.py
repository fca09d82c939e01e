"""What every job of every peer does: append one line of fixed size to a log that survives `kill -9`.

It is imported by programs that run in environments of their own, so it needs nothing but Python. `mark.mjs`
writes the same bytes.
"""

from __future__ import annotations

import os
import struct
import time

RECORD = struct.Struct("<cqddi")
"""What happened, the job's number, when it was sent (or 0), when this was written (seconds), the process."""

BEGAN, ENDED, TICKED = b"s", b"e", b"t"

_log: list[int] = []


def mark(number: int, sent_at: float = 0.0, kind: bytes = BEGAN) -> None:
    """One write of 29 bytes to a file opened for appending is atomic."""
    if not _log:
        _log.append(os.open(os.environ["PEER_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    os.write(_log[0], RECORD.pack(kind, number, sent_at, time.time(), os.getpid()))
