"""From templates to pages. Everything is escaped, and secrets are taken out of it, whatever a template says.
A template names what is shown as it is: `name`, `link`, `path` (an address of ours), `typed` (what the same
request said). Links begin with the prefix we are mounted under."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined, pass_context
from jinja2.filters import do_truncate
from jinja2.runtime import Context
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from mainspring.admin.redact import Redaction
from mainspring.model.access import AccessRole
from mainspring.tasks.checks import is_name
from mainspring.version import __version__
from mainspring.web.frame.flash import forget, notice_of
from mainspring.web.frame.nav import here, sections
from mainspring.web.frame.shapes import FILTERS, json_text
from mainspring.web.privacy import Plain, redaction_of, shown_name

_HIDE = "redaction"


@pass_context
def _without_secrets(context: Context, value: object) -> object:
    """Whatever a template shows."""
    if value is None or isinstance(value, Plain | Markup | bool | int | float | datetime | Undefined):
        return value
    return _hide(context).text(str(value))


@pass_context
def _json_text(context: Context, value: object) -> str:
    return Plain(json_text(_hide(context).payload(value)))


@pass_context
def _tojson(context: Context, value: object) -> Markup:
    return htmlsafe_json_dumps(_hide(context).payload(value))


@pass_context
def _truncate(context: Context, value: object, *how: Any) -> str:
    # First the secrets: of one that is cut in two nobody can tell that it is one.
    return do_truncate(context.environment, _hide(context).text(str(value)), *how)


def _hide(context: Context) -> Redaction:
    hide: Redaction = context[_HIDE]
    return hide


def _link(text: str) -> str:
    """A name, as a link has it."""
    written = quote(text)
    return Plain(written) if is_name(text) else written


_templates = Environment(
    loader=PackageLoader("mainspring.web"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_without_secrets,
    trim_blocks=True,
    lstrip_blocks=True,
)
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
    """A page, or a part of one: `template` decides. A part does not use up what the last act had to say."""
    whole = not template.startswith("parts/")
    notice = notice_of(request) if whole else None
    text = _templates.get_template(template).render(
        redaction=redaction_of(request.app.state.desk),
        base=Plain(request.scope.get("root_path", "")),
        actor=getattr(request.state, "actor", None),
        may=partial(_may, request),
        path=Plain(here(request)),
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
