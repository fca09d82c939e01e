"""Orders that somebody else's page has a signed-in browser send are refused.

A browser sends our cookie, and whatever a host app knows people by, along with requests that other sites
cause. It also says where a request comes from, and pages cannot change that: `Sec-Fetch-Site`, `Origin`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

from mainspring.model.access import Actor
from mainspring.web.problems import Problem
from mainspring.web.routes import READING


class CrossSite(Problem):
    """An order from somebody else's page."""

    def __init__(self, detail: str) -> None:
        super().__init__(403, "csrf", detail)


def refuse_others(request: Request, actor: Actor | None) -> None:
    """Raise CrossSite for an order, or a stream, that did not come from our own pages. A token is sent by
    nobody but who has it: with one it does not matter where a request comes from."""
    if actor is not None and actor.via == "token":
        return
    if request.method in READING:
        if "text/event-stream" in request.headers.get("accept", ""):
            _check(request, ("same-origin", "none"))
        return
    _check(request, ("same-origin",))
    if "cookie" in request.headers and not {"origin", "sec-fetch-site"} & {*request.headers}:
        raise CrossSite("origin: expected, as browsers send it; programs send a token instead of a cookie")


def _check(request: Request, sites: tuple[str, ...]) -> None:
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in sites:
        raise CrossSite(f"sec-fetch-site: expected {' or '.join(sites)}; this came from another site's page")
    origin = request.headers.get("origin")
    if origin is not None and not _is_ours(origin, request):
        raise CrossSite("origin: expected our own; this came from another site's page")


def _is_ours(origin: str, request: Request) -> bool:
    parts = urlsplit(origin)
    # A proxy that ends TLS may not say so: https outside and http here is no contradiction, the reverse is.
    schemes = ("https",) if request.url.scheme == "https" else ("http", "https")
    return parts.scheme in schemes and parts.netloc.lower() == request.headers.get("host", "").lower()
