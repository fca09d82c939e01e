"""Logging for the commands that serve. A program that has set up its own keeps it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

from mainspring.admin.redact import Redaction
from mainspring.cli.output import printable
from mainspring.config import Settings
from mainspring.telemetry.run_fields import NAMES, RunFields

Redact = Callable[[str], str]


def set_up_logging(settings: Settings, stream: TextIO, *, every_run: bool) -> None:
    """Write to the stream, without what looks like a secret, unless handlers are there already, or the
    settings say that logging is set up elsewhere. Successes are logged one by one only when `every_run` asks
    for it."""
    config = settings.log
    if not config.configure:
        return
    level = logging.getLevelNamesMapping()[config.level.upper()]
    _set_level("mainspring", level)
    _set_level("mainspring.runs", level if every_run else max(level, logging.WARNING))
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(stream)
    redact = Redaction(settings.privacy.redact).text
    handler.setFormatter(JsonLines(redact) if config.format == "json" else TextLines(redact))
    handler.addFilter(RunFields())
    root.addHandler(handler)
    # Other libraries' debugging is not what `--log-level debug` asks for.
    root.setLevel(max(level, logging.INFO))


def _set_level(name: str, level: int) -> None:
    logger = logging.getLogger(name)
    if logger.level == logging.NOTSET:
        logger.setLevel(level)


class TextLines(logging.Formatter):
    """`HH:MM:SS level message`, on one line whatever the message holds; tracebacks are indented. What a
    handler logs ends with its job, and every line of a run with its trace."""

    def __init__(self, redact: Redact = lambda text: text) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        at = self.formatTime(record, "%H:%M:%S")
        message = printable(self._redact(record.getMessage()))
        line = f"{at} {record.levelname.lower():<7} {message}{_place(record)}"
        below = self._redact(_traceback(self, record)).splitlines()
        return "\n".join([line, *(f"    {printable(each)}" for each in below)])


class JsonLines(logging.Formatter):
    """One object a line, with the run where the record has one."""

    def __init__(self, redact: Redact = lambda text: text) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redact(record.getMessage()),
        }
        for name in NAMES:
            if hasattr(record, name):
                value = getattr(record, name)
                facts[name] = self._redact(value) if isinstance(value, str) else value
        if below := _traceback(self, record):
            facts["exception"] = self._redact(below)
        return json.dumps(facts, default=str)


def _place(record: logging.LogRecord) -> str:
    """What a reader cannot see from the message itself."""
    parts = []
    # Our own lines begin with their job.
    if hasattr(record, "job_id") and record.name not in ("mainspring", "mainspring.runs"):
        parts.append(f"job={record.job_id}")
    if hasattr(record, "trace_id"):
        parts.append(f"trace={printable(record.trace_id)}")
    return f"  [{' '.join(parts)}]" if parts else ""


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [record.exc_text or ""]
    if record.exc_info:
        parts = [formatter.formatException(record.exc_info)]
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(part for part in parts if part)
