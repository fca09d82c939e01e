"""Values that were shown without their secrets, and came back changed."""

from __future__ import annotations

from mainspring.admin.spelled import HIDDEN


def restored(wanted: object, had: object, shown: object = None) -> object:
    """What was hidden when it was shown, whole or a part of a text, and came back so, is what it was."""
    if wanted == HIDDEN or (isinstance(wanted, str) and wanted == shown):
        return had
    if isinstance(wanted, dict):
        before = had if isinstance(had, dict) else {}
        seen = shown if isinstance(shown, dict) else {}
        return {key: restored(value, before.get(key, value), seen.get(key)) for key, value in wanted.items()}
    if isinstance(wanted, list):
        old = had if isinstance(had, list) else []
        seen_there = shown if isinstance(shown, list) and len(shown) == len(old) else []
        return [
            restored(value, old[at], seen_there[at] if at < len(seen_there) else None)
            if at < len(old)
            else value
            for at, value in enumerate(wanted)
        ]
    return wanted
