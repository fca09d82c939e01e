"""`/tokens`, `/sessions`, `/me` and `/audit-log`: the access of users and programs, and their orders."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.access import NewTokenView, Sessions, SessionView, Tokens, TokenView
from mainspring.admin.audit_log import AuditEntryView, VerifiedView
from mainspring.model.access import AccessRole
from mainspring.model.audit_log import AuditFilter
from mainspring.model.value import Value
from mainspring.web.api.answers import answers, answers_items, answers_page, items, json, page
from mainspring.web.api.values import Body, Cursor, Id, Length, Limit, Line, Params, Text, cursor, position
from mainspring.web.auth.identity import actor_of
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.problems import Problem
from mainspring.web.services import AnAdmin

routes = Routes("access", ApiRoute, prefix="/api/v1", tags=["access"])
audit_log = Routes("audit_log", ApiRoute, prefix="/api/v1/audit-log", tags=["audit_log"])


class NewToken(Body):
    """A token to be made."""

    name: Line
    role: Literal["viewer", "operator", "admin"]
    scopes: list[Line] = Field(default_factory=list, max_length=50)
    expires: Length | None = None


class Which(Params):
    """Which entries."""

    action: Text | None = Field(default=None, description="Noun and verb: jobs.cancel.")
    actor: Text | None = None
    object: Text | None = None
    limit: Limit = 50
    cursor: Cursor = None


class Ended(Value, frozen=True, kw_only=True):
    """A token or a session that was ended."""

    id: int
    ended: bool


class Me(Value, frozen=True, kw_only=True):
    """Who sent the request, as this server knows the sender."""

    name: str
    role: AccessRole
    via: str
    scopes: tuple[str, ...]
    until: datetime | None


@routes.get("/tokens", role=AccessRole.ADMIN, **answers_items(TokenView))
async def list_tokens(admin: AnAdmin) -> Response:
    """Every token on record, dead ones too, newest first; never the tokens themselves."""
    return items([TokenView.of(each) for each in await admin.tokens.aall()])


@routes.post("/tokens", role=AccessRole.ADMIN, order=Tokens.acreate, **answers(NewTokenView, status=201))
async def create_token(admin: AnAdmin, body: NewToken) -> Response:
    """Make a token. `secret` is shown this once. It may do no more than its maker, and for no longer."""
    made = await admin.tokens.acreate(body.name, role=body.role, scopes=body.scopes, expires=body.expires)
    return json(NewTokenView.of(made.token, secret=made.secret), 201)


@routes.delete("/tokens/{token_id}", role=AccessRole.ADMIN, order=Tokens.arevoke, **answers(Ended))
async def revoke_token(admin: AnAdmin, token_id: Id) -> Response:
    """End a token and every session that was opened with it, at once."""
    if not await admin.tokens.arevoke(token_id):
        raise Problem(409, "refused", f"token {token_id} had ended before")
    return json(Ended(id=token_id, ended=True))


@routes.get("/sessions", role=AccessRole.ADMIN, **answers_items(SessionView))
async def list_sessions(admin: AnAdmin) -> Response:
    """Browsers that are signed in, newest first."""
    return items([SessionView.of(each) for each in await admin.sessions.aall()])


@routes.delete("/sessions/{session_id}", role=AccessRole.ADMIN, order=Sessions.aend, **answers(Ended))
async def end_session(admin: AnAdmin, session_id: Id) -> Response:
    """Sign one browser out, at once."""
    await admin.sessions.aend(session_id)
    return json(Ended(id=session_id, ended=True))


@routes.get("/me", **answers(Me))
async def me(request: Request) -> Response:
    """Whom we take you for."""
    actor = actor_of(request)
    return json(Me(name=actor.name, role=actor.role, via=actor.via, scopes=actor.scopes, until=actor.until))


@audit_log.get("", role=AccessRole.ADMIN, **answers_page(AuditEntryView))
async def list_entries(admin: AnAdmin, which: Annotated[Which, Query()]) -> Response:
    """What people and programs ordered, newest first, and what came of it."""
    question = ("audit_log", which.action, which.actor, which.object)
    before = position(which.cursor, *question)
    found = await admin.audit_log.afind(
        AuditFilter(
            action=which.action,
            actor=which.actor,
            object=which.object,
            before=before if isinstance(before, int) else None,
            limit=which.limit,
        )
    )
    following = cursor(found[-1].entry.id, *question) if len(found) == which.limit else None
    return page([AuditEntryView.of(each) for each in found], following)


@audit_log.get("/verify", role=AccessRole.ADMIN, **answers(VerifiedView))
async def verify(admin: AnAdmin) -> Response:
    """Whether the chain of the audit log holds, entry by entry."""
    return json(VerifiedView.of(await admin.audit_log.averify()))
