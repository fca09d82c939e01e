"""From templates to pages. Everything is escaped, and secrets are taken out of it, whatever a template says.
A template names what is shown as it is: `name`, `link`, `path` (an address of ours), `typed` (what the same
request said). Links begin with the prefix we are mounted under."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined, pass_context
from jinja2.filters import do_truncate
from jinja2.runtime import Context
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from mainspring.admin.redact import Redaction
from mainspring.model.access import AccessRole, Actor
from mainspring.tasks.checks import is_name
from mainspring.version import __version__
from mainspring.web.privacy import Plain, redaction_of, shown_name

_HIDE = "redaction"
_COOKIE = "mainspring_said"
_LONGEST = 1000
_SECONDS = 60
KINDS = ("good", "info", "warn", "bad")
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_NEVER = 9000
"""From this year on a moment means that there is none: the store's end of time."""


class Section(NamedTuple):
    """One entry of the navigation."""

    title: str
    path: str
    key: str
    """`g` and this letter lead here."""
    noun: str
    icon: str
    """The d of an SVG path, 16 by 16, drawn as a line."""
    role: AccessRole = AccessRole.VIEWER
    current: bool = False


class Notice(NamedTuple):
    """A sentence, and how it is meant."""

    kind: str
    text: str


@pass_context
def _without_secrets(context: Context, value: object) -> object:
    """Whatever a template shows."""
    if value is None or isinstance(value, Plain | Markup | bool | int | float | datetime | Undefined):
        return value
    return _hide(context).text(str(value))


_templates = Environment(
    loader=PackageLoader("mainspring.web"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_without_secrets,
    trim_blocks=True,
    lstrip_blocks=True,
)


def ago(moment: datetime, now: datetime) -> str:
    """How long before or after now, in one or two units; the browser goes on with the same words."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    said = _length(abs(seconds))
    return f"{said} ago" if seconds > 0 else f"in {said}"


def took(length: timedelta | float | None) -> str:
    """How long something took, as exact as it matters."""
    if length is None:
        return "–"
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if seconds < 0.001:
        return "0ms" if seconds <= 0 else "<1ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 10:
        return f"{seconds:.1f}s".replace(".0s", "s")
    return _length(seconds)


def stamp(moment: datetime | None) -> str:
    """In UTC, to the second."""
    return "–" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def clock(moment: datetime) -> str:
    """The time of day, in UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"


def iso(moment: datetime) -> str:
    """For machines."""
    return moment.astimezone(UTC).isoformat()


def is_never(moment: datetime | None) -> bool:
    """Whether it is the store's way to say that no time has been set."""
    return moment is None or moment.year >= _NEVER


def count(number: int) -> str:
    """With thin spaces between thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def json_text(value: object) -> str:
    """A value as JSON over several lines."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()


def hexadecimal(value: int | None) -> str:
    """An id of a process, as the log and the command line write it."""
    return "–" if value is None else f"{value:x}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """`3 jobs`, `1 job`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def size(number: int | None) -> str:
    """Bytes, in the unit in which they are one to four digits."""
    if number is None:
        return "–"
    amount, unit = float(number), 0
    while amount >= 1000 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} {_SIZES[unit]}" if unit == 0 or amount >= 10 else f"{amount:.1f} {_SIZES[unit]}"


FILTERS: dict[str, Callable[..., Any]] = {
    "ago": ago,
    "took": took,
    "stamp": stamp,
    "clock": clock,
    "iso": iso,
    "is_never": is_never,
    "count": count,
    "json_text": json_text,
    "hexadecimal": hexadecimal,
    "plural": plural,
    "size": size,
}


@pass_context
def _json_text(context: Context, value: object) -> str:
    return Plain(json_text(_hide(context).payload(value)))


@pass_context
def _tojson(context: Context, value: object) -> Markup:
    return htmlsafe_json_dumps(_hide(context).payload(value))


@pass_context
def _truncate(context: Context, value: object, *how: Any) -> str:
    # First the secrets: half of a secret cannot be recognized.
    return do_truncate(context.environment, _hide(context).text(str(value)), *how)


def _link(text: str) -> str:
    """A name, as a link has it."""
    written = quote(text)
    return Plain(written) if is_name(text) else written


_templates.filters.update(
    {
        **FILTERS,
        "json_text": _json_text,
        "tojson": _tojson,
        "truncate": _truncate,
        "name": shown_name,
        "link": _link,
        "path": Plain,
        "typed": Plain,
    }
)


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page, or a part of one: `template` decides. A part does not use up the message of the last order."""
    whole = not template.startswith("parts/")
    notice = notice_of(request) if whole else None
    text = _templates.get_template(template).render(
        redaction=redaction_of(request.app.state.services),
        base=Plain(request.scope.get("root_path", "")),
        actor=getattr(request.state, "actor", None),
        may=partial(_may, request),
        path=Plain(here(request)),
        now=request.app.state.services.clock.now(),
        sections=sections(here(request), getattr(request.state, "actor", None)),
        version=__version__,
        notice=notice,
        **values,
    )
    answer = HTMLResponse(text, status)
    if notice is not None:
        forget(request, answer)
    return answer


def add_filter(name: str, function: Any) -> None:
    """A filter for every template."""
    _templates.filters[name] = function


_SECTIONS = (
    Section("Overview", "/", "o", "stats", "M2.5 8.5 8 3l5.5 5.5M4 7.5V13h8V7.5"),
    Section("Schedules", "/schedules", "s", "schedules", "M3 4h10v9H3zM3 7h10M5.5 2.5V5M10.5 2.5V5"),
    Section("Jobs", "/jobs", "j", "jobs", "M3 4.5h10M3 8h10M3 11.5h6"),
    Section("Dead letters", "/dead", "d", "dead", "M2.5 4h11v8.5h-11zM2.5 4.5 8 8.5l5.5-4"),
    Section(
        "Workflows",
        "/workflows",
        "f",
        "workflows",
        "M2.5 3h4v3h-4zM9.5 3h4v3h-4zM6 10h4v3H6zM4.5 6v2h7V6M8 8v2",
    ),
    Section("Workers", "/workers", "w", "fleet", "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01"),
    Section("Queues", "/queues", "q", "queues", "M3 3.5h2v9H3zM7 3.5h2v9H7zM11 3.5h2v9h-2z"),
    Section("Audit", "/audit", "a", "audit_log", "M4 2.5h5.5L12 5v8.5H4zM6 7.5h4M6 10h4", AccessRole.ADMIN),
    Section("Health", "/health", "h", "health", "M2 8.5h3l1.5-4 3 7.5 1.5-3.5h3"),
)


def sections(path: str, actor: Actor | None) -> tuple[Section, ...]:
    """Those that this actor may see; the one that this path is in is marked."""
    return tuple(
        each._replace(current=_is_in(path, each.path))
        for each in _SECTIONS
        if actor is None or actor.may(each.role, each.noun)
    )


def here(request: Request) -> str:
    """The path of a request below the prefix we are mounted under."""
    path: str = request.scope["path"]
    below = path.removeprefix(request.scope.get("root_path", ""))
    return below or "/"


def done(request: Request, path: str, text: str, *, kind: str = "good") -> Response:
    """The answer to an order: on to this page of ours, which says so. A reload does not repeat the order."""
    answer = RedirectResponse(f"{request.scope.get('root_path', '')}{path}", 303)
    said = json.dumps([kind, text[:_LONGEST]]).encode()
    answer.set_cookie(
        _COOKIE,
        urlsafe_b64encode(said).decode(),
        max_age=_SECONDS,
        path=_path(request),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


def notice_of(request: Request) -> Notice | None:
    """The message of the last order for this browser. It is shown as text: another page may have set it."""
    try:
        kind, text = json.loads(urlsafe_b64decode(request.cookies.get(_COOKIE, "")))
    except (ValueError, TypeError):
        return None
    if kind not in KINDS or not isinstance(text, str):
        return None
    return Notice(kind, text)


def forget(request: Request, answer: Response) -> None:
    """Say it once."""
    answer.delete_cookie(_COOKIE, path=_path(request))


def _hide(context: Context) -> Redaction:
    hide: Redaction = context[_HIDE]
    return hide


def _may(request: Request, role: str, noun: str) -> bool:
    """Whether who looks may do on this noun what needs that role; what they may not is not shown."""
    actor = getattr(request.state, "actor", None)
    return actor is not None and bool(actor.may(AccessRole(role), noun))


def _is_in(path: str, section: str) -> bool:
    return path == section or (section != "/" and path.startswith(f"{section}/"))


def _path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"


def _length(size: float) -> str:
    place = next(at for at, (unit, _) in enumerate(_UNITS) if size >= unit)
    unit, sign = _UNITS[place]
    whole = int(size // unit)
    if place >= 2 or whole >= 10:
        return f"{whole}{sign}"
    smaller, small_sign = _UNITS[place + 1]
    rest = int((size - whole * unit) // smaller)
    return f"{whole}{sign} {rest}{small_sign}" if rest else f"{whole}{sign}"
