"""Values that were shown without their secrets, and came back changed."""

from __future__ import annotations

from mainspring.ops.access.redact import HIDDEN


def restored(wanted: object, had: object) -> object:
    """What was hidden when it was shown, and came back so, is what it was."""
    if wanted == HIDDEN:
        return had
    if isinstance(wanted, dict):
        before = had if isinstance(had, dict) else {}
        return {key: restored(value, before.get(key, value)) for key, value in wanted.items()}
    if isinstance(wanted, list):
        old = had if isinstance(had, list) else []
        return [restored(value, old[at] if at < len(old) else value) for at, value in enumerate(wanted)]
    return wanted
