"""From templates to pages. Everything is escaped; links begin with the prefix we are mounted under."""

from __future__ import annotations

from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from mainspring.model.access import AccessRole
from mainspring.version import __version__
from mainspring.web.frame.flash import forget, notice_of
from mainspring.web.frame.nav import here, sections
from mainspring.web.frame.shapes import FILTERS

_templates = Environment(
    loader=PackageLoader("mainspring.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters.update(FILTERS)


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page, or a part of one: `template` decides. A part does not use up what the last act had to say."""
    whole = not template.startswith("parts/")
    notice = notice_of(request) if whole else None
    text = _templates.get_template(template).render(
        base=request.scope.get("root_path", ""),
        actor=getattr(request.state, "actor", None),
        may=partial(_may, request),
        path=here(request),
        now=request.app.state.desk.clock.now(),
        sections=sections(here(request), getattr(request.state, "actor", None)),
        version=__version__,
        notice=notice,
        **values,
    )
    answer = HTMLResponse(text, status)
    if notice is not None:
        forget(request, answer)
    return answer


def _may(request: Request, role: str, noun: str) -> bool:
    """Whether who looks may do on this noun what needs that role; what they may not is not shown."""
    actor = getattr(request.state, "actor", None)
    return actor is not None and bool(actor.may(AccessRole(role), noun))


def add_filter(name: str, function: Any) -> None:
    """A filter for every template."""
    _templates.filters[name] = function
