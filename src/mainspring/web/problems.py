"""From exceptions to answers: the only module that knows status codes. RFC 9457 bodies with a stable code."""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mainspring.admin.redact import HIDDEN, Redaction
from mainspring.errors import (
    AnswerLost,
    DuplicateJob,
    InvalidArgument,
    InvalidConfig,
    KeyReused,
    MainspringError,
    MoreThanOwn,
    NotFound,
    Outdated,
    SchemaMismatch,
    StoreFull,
    StoreUnavailable,
    UnknownTask,
    UsageError,
    shown,
)
from mainspring.model.access import AccessRole
from mainspring.web.privacy import redaction_of
from mainspring.web.services import services_of

MEDIA_TYPE = "application/problem+json"
_MOST_DESCRIBED = 20


class Problem(Exception):
    """An answer that is not what was asked for."""

    def __init__(
        self, status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **members: object
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers, self.members = dict(headers or {}), members

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
    """The sender is not known."""

    def __init__(self, detail: str = "sign in, or send a token: Authorization: Bearer ms_…") -> None:
        super().__init__(401, "auth", detail, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(Problem):
    """The sender is known and may not do this."""

    def __init__(self, role: AccessRole) -> None:
        super().__init__(403, "forbidden", f"needs the role {role.value} and a token whose scopes reach here")


def problem_of(error: MainspringError, hide: Redaction) -> Problem:
    """What an error of ours becomes, without the secrets that it may quote."""
    if isinstance(error, InvalidArgument | InvalidConfig):
        got = HIDDEN if hide.is_secret(error.field) else hide.text(shown(error.got))
        # Not hidden as a whole: `token: expected 3 to 9 letters` shows no token.
        detail = f"{error.field}: expected {error.expected}, got {got}"
        status, code = (403, "forbidden") if isinstance(error, MoreThanOwn) else (422, "invalid")
        return Problem(status, code, detail, field=error.field, got=got, expected=error.expected)
    problem = _problem_of(error)
    problem.detail = hide.text(problem.detail)
    return problem


def _problem_of(error: MainspringError) -> Problem:
    match error:
        case NotFound():
            return Problem(404, "not_found", str(error))
        case DuplicateJob():
            return Problem(409, "duplicate", str(error), job_id=error.job_id)
        case KeyReused():
            return Problem(409, "idempotency_conflict", str(error), field="idempotency-key")
        case Outdated():
            return Problem(412, "precondition", str(error))
        case UnknownTask():
            return Problem(422, "unknown_task", str(error), field="task", got=shown(error.name))
        case UsageError():
            return Problem(422, "invalid", str(error))
        case _:
            return _store_problem(error)


def _store_problem(error: MainspringError) -> Problem:
    match error:
        case StoreUnavailable():
            # Which database it is, and where, is not shown over HTTP.
            return Problem(
                503, "store_unavailable", "the database is away; try again", headers={"Retry-After": "5"}
            )
        case AnswerLost():
            return Problem(503, "in_doubt", "the database's answer was lost: it may or may not have happened")
        case SchemaMismatch():
            return Problem(
                503, "schema", "the database's schema is not this version's: mainspring db migrate"
            )
        case StoreFull():
            return Problem(507, "store_full", "the database's disk is full; nothing was written")
        case _:
            return Problem(409, "refused", str(error))


def validation_problem(error: RequestValidationError, hide: Redaction) -> Problem:
    """What FastAPI says of parameters and bodies, in our words. A path that cannot be is not found."""
    described = [_described(each, hide) for each in error.errors()[:_MOST_DESCRIBED]]
    if any(each.get("loc", ("",))[0] == "path" for each in error.errors()):
        return Problem(404, "not_found", "there is nothing at this path")
    first = described[0]
    return Problem(
        422,
        first["code"],
        f"{first['field']}: expected {first['expected']}, got {first['got']}",
        field=first["field"],
        got=first["got"],
        expected=first["expected"],
        errors=described,
    )


def _described(error: dict[str, Any], hide: Redaction) -> dict[str, str]:
    place = [str(each) for each in error["loc"][1:]] or [str(error["loc"][0])]
    kind: str = error["type"]
    got = "nothing" if kind == "missing" else hide.text(shown(error.get("input")))
    if kind != "missing" and hide.is_secret(place[-1]):
        got = HIDDEN
    return {"code": _code(kind), "field": ".".join(place)[:200], "got": got, "expected": _expected(error)}


def _code(kind: str) -> str:
    if kind == "extra_forbidden":
        return "unknown_field"
    if kind == "missing":
        return "missing"
    if kind.startswith(("greater_than", "less_than", "too_", "string_too")) or kind.endswith(
        ("_long", "_short")
    ):
        return "range"
    return "type" if kind.endswith(("_type", "_parsing", "_from_float")) else "invalid"


def _expected(error: dict[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return "only fields there are"
    if error["type"] == "missing":
        return "a value"
    words: str = error["msg"].removeprefix("Input should be ")
    return words[:1].lower() + words[1:]


def http_problem(error: HTTPException) -> Problem:
    """What Starlette raises of itself."""
    codes = {404: "not_found", 405: "method", 400: "bad_request"}
    details = {404: "there is nothing at this path", 405: "this path does not have that method"}
    detail = details.get(error.status_code, str(error.detail))
    return Problem(
        error.status_code, codes.get(error.status_code, "refused"), detail, headers=dict(error.headers or {})
    )


def problem_response(problem: Problem) -> Response:
    """A problem on its way out."""
    return JSONResponse(problem.body(), problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def as_problem(error: Exception, hide: Redaction) -> Problem:
    """Any of the errors that have an answer."""
    match error:
        case Problem():
            return error
        case MainspringError():
            return problem_of(error, hide)
        case RequestValidationError():
            return validation_problem(error, hide)
        case HTTPException():
            return http_problem(error)
        case _:
            raise error


async def on_problem(request: Request, error: Exception) -> Response:
    """Handler of all of them, for FastAPI."""
    services_of(request).noticed(error)
    return problem_response(as_problem(error, redaction_of(services_of(request))))
