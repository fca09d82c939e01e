"""`/tokens`, `/sessions` and `/acts`: who may come in, and what they ordered."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.access import Sessions, Tokens, session_view, token_view
from mainspring.admin.audit_log import act_view, verified_view
from mainspring.admin.views import iso
from mainspring.model.access import AccessRole
from mainspring.model.audit_log import AuditFilter
from mainspring.web.access.identity import actor_of
from mainspring.web.api import shapes
from mainspring.web.api.answers import answers, answers_page, json, page
from mainspring.web.api.values import Body, Cursor, Id, Length, Limit, Line, Params, Text
from mainspring.web.cursor import cursor, position
from mainspring.web.desk import AnAdmin
from mainspring.web.problems import Problem
from mainspring.web.routes import Routes
from mainspring.web.wire.strict import ApiRoute

routes = Routes("access", ApiRoute, prefix="/api/v1", tags=["access"])
acts = Routes("acts", ApiRoute, prefix="/api/v1/acts", tags=["acts"])


class New(Body):
    """A token to be made."""

    name: Line
    role: Literal["viewer", "operator", "admin"]
    scopes: list[Line] = Field(default_factory=list, max_length=50)
    expires: Length | None = None


class Which(Params):
    """Which acts."""

    act: Text | None = Field(default=None, description="Noun and verb: jobs.cancel.")
    actor: Text | None = None
    target: Text | None = None
    limit: Limit = 50
    cursor: Cursor = None


@routes.get("/tokens", role=AccessRole.ADMIN, **answers(shapes.Tokens))
async def list_tokens(admin: AnAdmin) -> Response:
    """Every token on record, dead ones too, newest first; never the tokens themselves."""
    return json({"items": [token_view(each) for each in await admin.tokens.aall()]})


@routes.post("/tokens", role=AccessRole.ADMIN, order=Tokens.acreate, **answers(shapes.NewToken, status=201))
async def create_token(admin: AnAdmin, body: New) -> Response:
    """Make a token. `secret` is told this once. It may do no more than who makes it, and not for longer."""
    made = await admin.tokens.acreate(body.name, role=body.role, scopes=body.scopes, expires=body.expires)
    return json({**token_view(made.token), "secret": made.secret}, 201)


@routes.delete("/tokens/{token_id}", role=AccessRole.ADMIN, order=Tokens.arevoke, **answers(shapes.Ended))
async def revoke_token(admin: AnAdmin, token_id: Id) -> Response:
    """End a token and every session that was opened with it, at once."""
    if not await admin.tokens.arevoke(token_id):
        raise Problem(409, "refused", f"token {token_id} had ended before")
    return json({"id": token_id, "ended": True})


@routes.get("/sessions", role=AccessRole.ADMIN, **answers(shapes.Sessions))
async def list_sessions(admin: AnAdmin) -> Response:
    """Browsers that are signed in, newest first."""
    return json({"items": [session_view(each) for each in await admin.sessions.aall()]})


@routes.delete("/sessions/{session_id}", role=AccessRole.ADMIN, order=Sessions.aend, **answers(shapes.Ended))
async def end_session(admin: AnAdmin, session_id: Id) -> Response:
    """Sign one browser out, at once."""
    await admin.sessions.aend(session_id)
    return json({"id": session_id, "ended": True})


@routes.get("/me", **answers(shapes.Me))
async def me(request: Request) -> Response:
    """Whom we take you for."""
    actor = actor_of(request)
    return json(
        {
            "name": actor.name,
            "role": actor.role.value,
            "via": actor.via,
            "scopes": list(actor.scopes),
            "until": iso(actor.until),
        }
    )


@acts.get("", role=AccessRole.ADMIN, **answers_page(shapes.ActEntry))
async def list_acts(admin: AnAdmin, which: Annotated[Which, Query()]) -> Response:
    """What people and programs ordered, newest first, and what came of it."""
    question = ("acts", which.act, which.actor, which.target)
    before = position(which.cursor, *question)
    found = await admin.audit_log.afind(
        AuditFilter(
            act=which.act,
            actor=which.actor,
            target=which.target,
            before=before if isinstance(before, int) else None,
            limit=which.limit,
        )
    )
    following = cursor(found[-1].entry.id, *question) if len(found) == which.limit else None
    return page([act_view(each) for each in found], following)


@acts.get("/verify", role=AccessRole.ADMIN, **answers(shapes.Verified))
async def verify(admin: AnAdmin) -> Response:
    """Whether the chain of acts holds, entry by entry."""
    return json(verified_view(await admin.audit_log.averify()))
