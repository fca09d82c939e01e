"""Logging for the commands that serve. A program that has set up its own keeps it."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TextIO

from mainspring.cli.output import printable
from mainspring.config import LogConfig

_OF_A_RUN = ("job_id", "task", "attempt")


def set_up_logging(config: LogConfig, stream: TextIO, *, every_run: bool) -> None:
    """Write to the stream unless handlers are there already. Successes are logged one by one only
    when `every_run` asks for it."""
    level = logging.getLevelNamesMapping()[config.level.upper()]
    _set_level("mainspring", level)
    _set_level("mainspring.runs", level if every_run else max(level, logging.WARNING))
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if config.format == "json" else TextLines())
    root.addHandler(handler)
    # Other libraries' debugging is not what `--log-level debug` asks for.
    root.setLevel(max(level, logging.INFO))


def _set_level(name: str, level: int) -> None:
    logger = logging.getLogger(name)
    if logger.level == logging.NOTSET:
        logger.setLevel(level)


class TextLines(logging.Formatter):
    """`HH:MM:SS level message`, on one line whatever the message holds; tracebacks are indented."""

    def format(self, record: logging.LogRecord) -> str:
        at = self.formatTime(record, "%H:%M:%S")
        line = f"{at} {record.levelname.lower():<7} {printable(record.getMessage())}"
        below = _traceback(self, record).splitlines()
        return "\n".join([line, *(f"    {printable(each)}" for each in below)])


class JsonLines(logging.Formatter):
    """One object a line, with the job where the record has one."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        facts.update({name: getattr(record, name) for name in _OF_A_RUN if hasattr(record, name)})
        if below := _traceback(self, record):
            facts["exception"] = below
        return json.dumps(facts, default=str)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info:
        return formatter.formatException(record.exc_info)
    return record.exc_text or ""
