"""Lives of the server: cached numbers of one life may be wrong in the next.

After a failover the last commits may be missing, also numbers that were given to names. A process that goes
on after the failover must not use its cached numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from mainspring.errors import StoreUnavailable


class NewServer(StoreUnavailable):
    """The numbers in this call were read from another server, or before a restart of this server."""


class Lives:
    """Counts lives. A life is a server from one start to the next, with a database on it."""

    def __init__(self) -> None:
        self.count = 0
        self._known: object = None
        self._forget: list[Callable[[], None]] = []

    def on_change(self, forget: Callable[[], None]) -> None:
        """Register a function. It is called before any caller gets a session of another life."""
        self._forget.append(forget)

    def meet(self, life: object) -> None:
        """A session has been opened in this life."""
        if self._known is not None and life != self._known:
            self.end()
        self._known = life

    def end(self) -> None:
        """The next session may be of another life."""
        self.count += 1
        for forget in self._forget:
            forget()

    def require(self, count: int | None) -> None:
        """Raise NewServer if the life has changed since."""
        if count is not None and count != self.count:
            raise NewServer("another server answers now, or it began anew; try again")
