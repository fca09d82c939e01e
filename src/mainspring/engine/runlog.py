"""Where a run's log lines come from: `ctx.log`, and, where asked for, every logger."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from typing import Any, Protocol

from mainspring.clock import Clock
from mainspring.engine.fields import facts
from mainspring.model.job import Claim

_log = logging.getLogger("mainspring.job")
_traces = logging.Formatter()


class Keeper(Protocol):
    """Keeps lines."""

    def add(self, line: str) -> None:
        """Keep one."""


current: ContextVar[Keeper | None] = ContextVar("mainspring_run", default=None)
"""Whose lines the loggers of this context write, where all of them are captured."""


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """`ctx.log`: writes to the process's log, each line with its job, and keeps the lines for the run.
    What is kept does not depend on how quiet the process's log is, but for debugging."""

    def __init__(self, claim: Claim, keeper: Keeper | None, clock: Clock) -> None:
        super().__init__(_log, facts(claim))
        self._keeper = keeper
        self._clock = clock

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """One line."""
        shown = self.isEnabledFor(level)
        if self._keeper is not None and (shown or level >= logging.INFO):
            record = _log.makeRecord(_log.name, level, "", 0, msg, args, _exc_info(kwargs.get("exc_info")))
            self._keeper.add(_line(record, self._clock, named=False))
        if shown:
            token = current.set(None)  # it is kept already
            try:
                kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
                super().log(level, msg, *args, **kwargs)
            finally:
                current.reset(token)


class RootCapture(logging.Handler):
    """Keeps what any logger says inside a run, at the level that the loggers let through."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def attach(self) -> None:
        """Listen. A second time changes nothing."""
        logging.getLogger().addHandler(self)

    def detach(self) -> None:
        """Listen no more."""
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        keeper = current.get()
        if keeper is not None:
            keeper.add(_line(record, self._clock, named=True))


def _line(record: logging.LogRecord, clock: Clock, *, named: bool) -> str:
    at = clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    name = f"{record.name}: " if named else ""
    parts = [f"{at} {record.levelname.lower():<7} {name}{_message(record)}"]
    if record.exc_info and record.exc_info[0] is not None:
        parts.append(_traces.formatException(record.exc_info))
    return "\n".join(parts)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - formatting runs the user's __str__; a log line must not fail a job
        return f"{record.msg!r} (could not be formatted: {type(error).__name__})"


def _exc_info(given: object) -> Any:
    if isinstance(given, BaseException):
        return type(given), given, given.__traceback__
    return given if isinstance(given, tuple) else sys.exc_info() if given else None
