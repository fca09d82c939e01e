"""What an act has to say on the page after it: a cookie that the next whole page reads and ends."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

_COOKIE = "mainspring_said"
_LONGEST = 1000
_SECONDS = 60
KINDS = ("good", "info", "warn", "bad")


class Notice(NamedTuple):
    """A sentence, and how it is meant."""

    kind: str
    text: str


def done(request: Request, path: str, text: str, *, kind: str = "good") -> Response:
    """The answer to an act: on to this page of ours, which says so. A reload acts no second time."""
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
    """What the last act had to say to this browser. It is shown as text, whoever wrote it."""
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


def _path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"
