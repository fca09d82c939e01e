"""What jobs were given and what they made, as it may be shown."""

from __future__ import annotations

import msgspec

from mainspring.model.failure import Failure
from mainspring.model.report import RESULT_GONE
from mainspring.ops.redact import Redaction
from mainspring.ops.views import call_view
from mainspring.web.rendering import add_filter

_redaction = Redaction()
GONE = "no longer kept"


def redacted(value: object) -> object:
    """Any value that can be JSON."""
    return _redaction.payload(value)


def call(payload: bytes) -> dict[str, object]:
    """The arguments of a job: `args` and `kwargs`, or `payload` for one that another hand wrote."""
    return {name: _redaction.payload(value) for name, value in call_view(payload).items()}


def result(value: bytes | None) -> object:
    """What a handler returned."""
    if value is None:
        return None
    return GONE if value == RESULT_GONE else _redaction.payload(msgspec.json.decode(value))


def text(value: str) -> str:
    """A line of a log, a message, a traceback."""
    return _redaction.text(value)


def failure(value: Failure | None) -> Failure | None:
    """An error."""
    if value is None:
        return None
    return msgspec.structs.replace(value, message=text(value.message), traceback=text(value.traceback))


def shown(value: object) -> str:
    """A value of any kind on one line, such as one side of a difference."""
    hidden = _redaction.payload(value)
    if hidden is None:
        return "–"
    return text(hidden) if isinstance(hidden, str) else msgspec.json.encode(hidden).decode()


add_filter("shown", shown)
add_filter("redacted", redacted)
