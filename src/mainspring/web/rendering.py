"""From templates to pages. Everything is escaped; links begin with the prefix we are mounted under."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from mainspring.version import __version__

_templates = Environment(
    loader=PackageLoader("mainspring.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page, or a part of one: `template` decides."""
    text = _templates.get_template(template).render(
        base=request.scope.get("root_path", ""),
        actor=getattr(request.state, "actor", None),
        path=request.scope["path"],
        version=__version__,
        **values,
    )
    return HTMLResponse(text, status)


def add_filter(name: str, function: Any) -> None:
    """A filter for every template."""
    _templates.filters[name] = function
