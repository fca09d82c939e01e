"""The log of one run, in memory: its beginning and its end, when it is too long to keep whole."""

from __future__ import annotations

import threading
from collections import deque

LONGEST_LINE = 8 * 1024


class Capture:
    """Lines up to so many bytes, from any thread. Half of them are the first, half are the last."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._longest = min(LONGEST_LINE, limit // 4)
        self._lock = threading.Lock()
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._head_size = self._tail_size = 0
        self._lines = self._bytes = 0
        """What was cut out between head and tail."""

    def add(self, line: str) -> None:
        """Keep one line, or several that belong together."""
        text = self._cut(_clean(line))
        size = len(text) + 1
        with self._lock:
            if not self._tail and self._head_size + size <= self._half:
                self._head.append(text)
                self._head_size += size
                return
            self._tail.append(text)
            self._tail_size += size
            while self._tail_size > self._half:
                gone = self._tail.popleft()
                self._tail_size -= len(gone) + 1
                self._lines += 1
                self._bytes += len(gone) + 1

    def text(self) -> str | None:
        """All that was kept; None when nothing was said."""
        with self._lock:
            mark = []
            if self._lines:
                mark = [f"… {self._lines} lines ({self._bytes} bytes) were cut here …".encode()]
            return (
                b"\n".join([*self._head, *mark, *self._tail]).decode() if self._head or self._tail else None
            )

    def _cut(self, text: bytes) -> bytes:
        if len(text) <= self._longest:
            return text
        # A character may be cut in two: what is left of it goes.
        kept = text[: self._longest].decode(errors="ignore")
        return f"{kept}… ({len(text)} bytes)".encode()


def _clean(line: str) -> bytes:
    """No NUL and no lone surrogate, which no database takes; lines that go on are set in, so that no
    message can be taken for two."""
    text = line.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return "\n    ".join(text.splitlines()).encode("utf-8", "replace")
