"""The route of a page: its problems are pages, too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mainspring.errors import MainspringError
from mainspring.web.auth.policy import READING, GuardedRoute
from mainspring.web.middleware.routes import ExactRoute
from mainspring.web.privacy import Plain, redaction_of
from mainspring.web.problems import Problem, as_problem, problem_response
from mainspring.web.rendering import here, page
from mainspring.web.services import services_of

_HEADINGS = {
    401: "Sign in first",
    403: "You may not do this",
    405: "Not found",
    404: "Not found",
    409: "This cannot be done now",
    412: "Changed by someone else meanwhile",
    422: "This is not possible",
    503: "The database cannot be reached",
    507: "The database is full",
}


class PageRoute(GuardedRoute, ExactRoute):
    """A guarded route whose problems are pages; a part that htmx asked for gets the problem itself."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except (Problem, MainspringError, RequestValidationError) as error:
                services_of(request).noticed(error)
                return trouble(request, as_problem(error, redaction_of(services_of(request))))

        return shown


def is_for_people(request: Request) -> bool:
    """Whether who asks wants a page to read, rather than the problem for a program."""
    return "text/html" in request.headers.get("accept", "") and not here(request).startswith("/api/")


def trouble(request: Request, problem: Problem) -> Response:
    """The page of a problem."""
    if request.headers.get("HX-Request") == "true":
        return problem_response(problem)
    if problem.status == 401 and request.method in READING:
        goes_to = urlencode(
            {"next": str(request.url.path) + (f"?{request.url.query}" * bool(request.url.query))}
        )
        return RedirectResponse(f"{request.scope.get('root_path', '')}/login?{goes_to}", 303)
    # A problem is without secrets when it is made.
    problem.detail = Plain(problem.detail)
    heading = _HEADINGS.get(problem.status, "Something went wrong")
    answer = page(request, "trouble.html", status=problem.status, problem=problem, heading=heading)
    answer.headers.update(problem.headers)
    return answer
