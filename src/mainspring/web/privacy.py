"""Payloads as people may see them: without secrets."""

from __future__ import annotations

from mainspring.ops.access.redact import Redaction
from mainspring.ops.views import View
from mainspring.web.access.gate import redaction
from mainspring.web.desk import Desk

_VALUES = frozenset(
    ("args", "kwargs", "payload", "result", "params", "inputs", "output", "before", "was", "now", "trigger")
)
"""Where users' values are."""
_TEXTS = frozenset(("message", "traceback", "log", "error", "line", "sentence"))
"""Where words are that may tell of them."""


def redaction_of(desk: Desk) -> Redaction:
    """What is hidden in an app."""
    return redaction(desk.app.settings.privacy.redact)


def private(desk: Desk, view: View) -> View:
    """A view without the secrets of its payloads."""
    return _walk(redaction_of(desk), view)


def _walk(hide: Redaction, view: View) -> View:
    shown: View = {}
    for name, value in view.items():
        if name in _VALUES:
            shown[name] = hide.payload(value)
        elif isinstance(value, str):
            shown[name] = hide.text(value) if name in _TEXTS else value
        elif isinstance(value, dict):
            shown[name] = _walk(hide, value)
        elif isinstance(value, list):
            shown[name] = [_walk(hide, each) if isinstance(each, dict) else each for each in value]
        else:
            shown[name] = value
    return shown
