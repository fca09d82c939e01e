"""A schedule as a form of text fields, and the changes of a user in that form as options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from mainspring.admin.redact import Redaction, restored
from mainspring.admin.schedules.draft import Draft
from mainspring.admin.views import call_view
from mainspring.duration import format_duration
from mainspring.errors import InvalidArgument
from mainspring.tasks.schedule import options_of
from mainspring.tasks.schedule_options import KINDS

Form = dict[str, str]
FIELDS = (
    *("cron", "every", "rrule", "at", "tz", "gap", "fold", "anchor", "dtstart", "start", "end"),
    *("calendar", "on_holiday", "misfire", "catch_up", "overlap", "allow", "window", "jitter", "max_fires"),
    *("expect_start_within", "expect_finish_by", "queue", "priority", "attempts", "args", "kwargs"),
)
"""The fields of a form, by the names of the options."""
LARGEST = 64 * 1024


def form_of(draft: Draft, redaction: Redaction) -> Form:
    """The form before the user types, with secrets hidden. The window is not stored, only the offset of the
    schedule in it."""
    when, policies = options_of(draft.trigger), draft.policies
    call = {name: redaction.payload(value) for name, value in call_view(draft.payload).items()}
    kind = next(each for each in KINDS if getattr(when, each) is not None)
    zoned = kind in ("cron", "rrule")
    return {
        "kind": kind,
        "cron": when.cron or "",
        "every": format_duration(when.every) if isinstance(when.every, timedelta) else "",
        "rrule": when.rrule or "",
        "at": "\n".join(_moment(each) for each in (when.at if isinstance(when.at, tuple) else ())),
        "tz": when.tz if zoned else "",
        "gap": when.gap if kind == "cron" else "",
        "fold": when.fold if kind == "cron" else "",
        "anchor": _moment(when.anchor),
        "dtstart": _moment(when.dtstart),
        "start": _moment(when.start),
        "end": _moment(when.end),
        "calendar": "" if when.calendar is None else when.calendar.name,
        "on_holiday": when.on_holiday or "",
        "misfire": policies.misfire.value,
        "catch_up": _length(policies.catch_up),
        "overlap": policies.overlap.value,
        "allow": str(policies.overlap_limit) if policies.overlap == "allow" else "",
        "window": "",
        "jitter": format_duration(policies.jitter) if policies.jitter else "",
        "expect_start_within": _length(policies.expect_start_within),
        "expect_finish_by": _length(policies.expect_finish_by),
        "max_fires": "" if policies.max_fires is None else str(policies.max_fires),
        "queue": draft.queue,
        "priority": str(draft.priority),
        "attempts": str(draft.attempts),
        "args": json.dumps(call.get("args") or [], ensure_ascii=False),
        "kwargs": json.dumps(call.get("kwargs") or {}, ensure_ascii=False),
    }


def options_from(said: Mapping[str, str], before: Form, draft: Draft) -> dict[str, object]:
    """The options that the user changed. Of the four kinds of trigger only the chosen one is read. A secret
    that comes back hidden keeps its value in the draft."""
    kind = said.get("kind", before["kind"])
    if kind not in KINDS:
        raise InvalidArgument("kind", kind, f"one of {', '.join(KINDS)}")
    found: dict[str, object] = {}
    for name in FIELDS:
        if name not in said or (name in KINDS and name != kind):
            continue
        text = said[name].replace("\r\n", "\n").strip()
        if len(text) > LARGEST:
            raise InvalidArgument(name, f"{len(text)} characters", f"at most {LARGEST}")
        if text != before[name] or (name == kind and kind != before["kind"]):
            found[name] = _READERS.get(name, _text)(text, name)
    call = call_view(draft.payload)
    found |= {
        each: restored(found[each], call.get(each), json.loads(before[each]))
        for each in ("args", "kwargs")
        if each in found
    }
    if "overlap" in found and found["overlap"] != "allow":
        found.pop("allow", None)
    return found


def field_of(error: InvalidArgument, form: Mapping[str, str]) -> str:
    """The field of the form that an error names; empty if it names no field."""
    name = error.field.removeprefix("schedule.").split("[")[0]
    if name in FIELDS or name == "kind":
        return name
    if name == "schedule":
        return "kind"
    return "kwargs" if "." in error.field and form.get("kwargs") else ""


def _moment(value: datetime | None) -> str:
    return "" if value is None else value.isoformat()


def _length(value: timedelta | None) -> str:
    return "" if value is None else format_duration(value)


def _whole(text: str, name: str) -> object:
    if not text:
        return None
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit():
        raise InvalidArgument(name, text, "a whole number")
    return int(text)


def _lines(text: str, name: str) -> object:
    return [each.strip() for each in text.split("\n") if each.strip()] or None


def _json(text: str, name: str) -> object:
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise InvalidArgument(name, text, f"JSON ({error})") from None


_READERS: dict[str, Callable[[str, str], object]] = {
    "at": _lines,
    "allow": _whole,
    "max_fires": _whole,
    "priority": _whole,
    "attempts": _whole,
    "args": _json,
    "kwargs": _json,
}


def _text(text: str, name: str) -> object:
    return text or None
