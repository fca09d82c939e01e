"""The sections of the dashboard, in the order of its navigation."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from mainspring.model.access import AccessRole, Actor


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
    Section("Audit", "/audit", "a", "acts", "M4 2.5h5.5L12 5v8.5H4zM6 7.5h4M6 10h4", AccessRole.ADMIN),
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


def _is_in(path: str, section: str) -> bool:
    return path == section or (section != "/" and path.startswith(f"{section}/"))
