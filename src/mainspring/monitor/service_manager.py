"""Words to the service manager over its datagram socket, as sd_notify(3) has them."""

from __future__ import annotations

import logging
import socket
from datetime import timedelta
from typing import Self

from mainspring.config import Manager

_log = logging.getLogger("mainspring")
LONGEST = timedelta(minutes=1)
PINGS = 3
"""Within one watchdog's time: one that is lost does no harm."""


class ServiceManager:
    """Says READY, WATCHDOG, STATUS and STOPPING; or nothing, where there is no service manager."""

    def __init__(self, address: str | None, watchdog: timedelta | None) -> None:
        # A name in the abstract namespace begins with a NUL, which an environment cannot hold.
        self._address = f"\0{address[1:]}" if address and address.startswith("@") else address
        self._watched = watchdog is not None
        self.every = LONGEST if watchdog is None else watchdog / PINGS
        """How often to come back."""
        self._stopping = self._deaf = False

    @classmethod
    def of(cls, manager: Manager | None) -> Self:
        """The one for this process."""
        return cls(None, None) if manager is None else cls(manager.address, manager.watchdog)

    @property
    def wanted(self) -> bool:
        """Whether there is one."""
        return self._address is not None

    def ready(self, status: str) -> None:
        """The start is over."""
        self._send(f"READY=1\nSTATUS={_line(status)}")

    def alive(self, status: str | None = None) -> None:
        """All loops make progress. Not saying so has the process killed, and another one started."""
        words = ["WATCHDOG=1"] if self._watched else []
        words += [] if status is None else [f"STATUS={_line(status)}"]
        if words:
            self._send("\n".join(words))

    def status(self, status: str) -> None:
        """A line for `systemctl status`."""
        self._send(f"STATUS={_line(status)}")

    def stopping(self) -> None:
        """The end has begun; said once."""
        if not self._stopping:
            self._stopping = True
            self._send("STOPPING=1")

    def _send(self, words: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
                sending.setblocking(False)
                sending.sendto(words.encode(), self._address)
        except OSError as error:
            if not self._deaf:
                self._deaf = True
                _log.warning("the service manager cannot be told of this process: %s", error.strerror)


def _line(text: str) -> str:
    return " ".join(text.split())
