"""From exceptions to answers: the one place that knows status codes. RFC 9457 bodies with a stable code."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mainspring.errors import (
    AnswerLost,
    DuplicateJob,
    InvalidArgument,
    InvalidConfig,
    MainspringError,
    NotFound,
    Outdated,
    StoreFull,
    StoreUnavailable,
    UsageError,
)
from mainspring.model.access import AccessRole


class Problem(Exception):
    """An answer that is not what was asked for."""

    def __init__(
        self, status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **members: object
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers, self.members = headers or {}, members

    def body(self) -> dict[str, Any]:
        """As it is sent."""
        return {
            "title": self.code,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            **self.members,
        }


class Unauthorized(Problem):
    """Nobody we know."""

    def __init__(self, detail: str = "sign in, or send a token: Authorization: Bearer ms_…") -> None:
        super().__init__(401, "auth", detail, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(Problem):
    """Somebody we know, who may not."""

    def __init__(self, role: AccessRole) -> None:
        super().__init__(403, "forbidden", f"needs the role {role.value} and a token whose scopes reach here")


def problem_of(error: MainspringError) -> Problem:
    """What an error of ours becomes."""
    match error:
        case InvalidArgument() | InvalidConfig():
            return Problem(422, "invalid", str(error), field=error.field, expected=error.expected)
        case NotFound():
            return Problem(404, "not_found", str(error))
        case DuplicateJob():
            return Problem(409, "duplicate", str(error), job_id=error.job_id)
        case Outdated():
            return Problem(412, "outdated", str(error))
        case UsageError():
            return Problem(422, "invalid", str(error))
        case StoreUnavailable() | AnswerLost():
            return Problem(503, "store_unavailable", str(error), headers={"Retry-After": "5"})
        case StoreFull():
            return Problem(507, "store_full", str(error))
        case _:
            return Problem(409, "refused", str(error))


def problem_response(problem: Problem) -> Response:
    """A problem on its way out."""
    return JSONResponse(
        problem.body(), problem.status, headers=problem.headers, media_type="application/problem+json"
    )


async def on_problem(request: Request, error: Exception) -> Response:
    """Handler of both kinds, for FastAPI."""
    if isinstance(error, MainspringError):
        error = problem_of(error)
    assert isinstance(error, Problem)  # noqa: S101 - what it is registered for
    return problem_response(error)
