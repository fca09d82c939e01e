"""Dead letters by their error: look at them, put them back, take them away."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Depends, Form
from pydantic import BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.dead_letters import DeadLetters
from mainspring.admin.jobs import Effect
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.access import AccessRole
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.run import Reason
from mainspring.model.value import Value
from mainspring.web.desk import AnAdmin, AtDesk, Desk
from mainspring.web.frame.flash import done
from mainspring.web.frame.rendering import page
from mainspring.web.frame.replays import Replays
from mainspring.web.frame.shapes import plural
from mainspring.web.pages.payloads import Payloads
from mainspring.web.pages.queries import LARGEST_ID, Sent, Text, Whole, address, one_of, or_none
from mainspring.web.pages.route import PageRoute
from mainspring.web.privacy import Plain
from mainspring.web.routes import Routes

GROUPS, PAGE, MOST_NAMED = 100, 50, 500
LINE = 200
LikeId = Annotated[Sent | None, BeforeValidator(or_none), Field(ge=1, le=LARGEST_ID)]
routes = Routes("dead", PageRoute, include_in_schema=False)


class Which(Value, frozen=True, kw_only=True):
    """Which letters somebody asks for, in their own words: those go into addresses and forms again."""

    said: DeadFilter
    like: int | None = None
    """The id of a letter: those of its task whose last error is like its own. Addresses name it, and not
    what the error says."""

    async def filter(self, desk: Desk) -> DeadFilter:
        """For the store; NotFound when the letter that is named has gone."""
        if self.like is None:
            return self.said
        letter = await desk.questions.dead_letters.aget(self.like)
        last = letter.errors[-1] if letter.errors else None
        line = None if last is None else last.message.partition("\n")[0][:LINE] or None
        error = None if last is None else last.type or None
        return msgspec.structs.replace(self.said, task=letter.task, error=error, text=line)

    def fields(self) -> dict[str, str]:
        """As they were given."""
        said = self.said
        given = {
            "task": said.task,
            "queue": said.queue,
            "error": said.error,
            "text": said.text,
            "reason": said.reason,
            "like": None if self.like is None else str(self.like),
        }
        return {name: Plain(value) for name, value in given.items() if value is not None}


def asked_for(
    task: Text = None,
    queue: Text = None,
    error: Text = None,
    text: Text = None,
    reason: Text = None,
    like: LikeId = None,
) -> Which:
    """Which letters an address names."""
    one_of(Reason, reason, "reason")
    return Which(said=DeadFilter(task=task, queue=queue, error=error, text=text, reason=reason), like=like)


def form_of(
    task: Annotated[Text, Form()] = None,
    queue: Annotated[Text, Form()] = None,
    error: Annotated[Text, Form()] = None,
    text: Annotated[Text, Form()] = None,
    reason: Annotated[Text, Form()] = None,
    like: Annotated[LikeId, Form()] = None,
) -> Which:
    """Which letters a form names."""
    return asked_for(task, queue, error, text, reason, like)


def replays_of(request: Request) -> Replays:
    """Those of this process."""
    state = request.app.state
    if not hasattr(state, "replays"):
        state.replays = Replays()
    found: Replays = state.replays
    return found


Asked = Annotated[Which, Depends(asked_for)]
Formed = Annotated[Which, Depends(form_of)]
TheReplays = Annotated[Replays, Depends(replays_of)]


@routes.get("/dead")
async def groups(request: Request, desk: AtDesk, which: Asked, replays: TheReplays) -> Response:
    return page(request, "dead.html", **await _groups(desk, which), replays=replays.all())


@routes.get("/dead/part")
async def groups_part(request: Request, desk: AtDesk, which: Asked, replays: TheReplays) -> Response:
    return page(request, "parts/dead.html", **await _groups(desk, which), replays=replays.all())


@routes.get("/dead/letters")
async def letters(request: Request, desk: AtDesk, which: Asked, before: Whole = None) -> Response:
    return page(request, "letters.html", **await _letters(desk, which, before))


@routes.post("/dead/replay", role=AccessRole.OPERATOR, order=DeadLetters.areplay)
async def replay(
    request: Request,
    desk: AtDesk,
    admin: AnAdmin,
    which: Formed,
    replays: TheReplays,
    ids: Annotated[list[Sent] | None, Form()] = None,
    everything: Annotated[bool, Form()] = False,
) -> Response:
    """Those that are named, at once; or all of a kind, in the background."""
    if ids:
        _few(ids)
        answers = await admin.dead_letters.areplay(ids)
        back = sum(each.effect is Effect.REPLAYED for each in answers)
        said = f"{plural(back, 'job')} went back into the queue."
        refused = [f"job {each.job_id} {each.why}" for each in answers if each.effect is Effect.NONE]
        gone = which.like in ids
        return done(
            request,
            "/dead" if gone else address("/dead/letters", **which.fields()),
            f"{said} {'; '.join(refused[:3])}".strip(),
            kind="warn" if refused else "good",
        )
    _chosen(which, everything)
    wanted = await which.filter(desk)
    started = await replays.start(admin, wanted, title=_title(wanted))
    return done(request, f"/dead/replays/{started}", "The replay has begun.", kind="info")


@routes.get("/dead/replays/{replay_id}")
async def replaying(request: Request, replays: TheReplays, replay_id: int) -> Response:
    return page(request, "replay.html", replay=replays.one(replay_id))


@routes.get("/dead/replays/{replay_id}/part")
async def replaying_part(request: Request, replays: TheReplays, replay_id: int) -> Response:
    return page(request, "parts/replay.html", replay=replays.one(replay_id))


@routes.post("/dead/replays/{replay_id}/cancel", role=AccessRole.OPERATOR, order="dead.cancel_replay")
async def cancel_replay(request: Request, admin: AnAdmin, replays: TheReplays, replay_id: int) -> Response:
    async with admin.context.recorded("dead.cancel_replay", object=replay_id):
        replays.cancel(replay_id)
    return done(request, f"/dead/replays/{replay_id}", "The replay stops.", kind="info")


@routes.post("/dead/purge", role=AccessRole.ADMIN, order=DeadLetters.apurge)
async def purge(
    request: Request,
    desk: AtDesk,
    admin: AnAdmin,
    which: Formed,
    typed: Annotated[str, Form()],
    ids: Annotated[list[Sent] | None, Form()] = None,
    everything: Annotated[bool, Form()] = False,
) -> Response:
    """For good. Who wants it types so."""
    if typed != "purge":
        raise InvalidArgument("typed", typed, "the word purge")
    if ids:
        _few(ids)
    else:
        _chosen(which, everything)
    gone = await admin.dead_letters.apurge(ids or await which.filter(desk))
    return done(request, "/dead", f"{plural(gone, 'dead letter')} deleted for good.")


async def _groups(desk: Desk, which: Which) -> dict[str, Any]:
    found = await desk.questions.dead_letters.agroups(await which.filter(desk))
    return {
        "groups": [
            (each, each.line, address("/dead/letters", like=each.newest_id)) for each in found[:GROUPS]
        ],
        "more": max(0, len(found) - GROUPS),
        "total": sum(each.count for each in found),
        "asked": which.fields(),
        "part_url": address("/dead/part", **which.fields()),
    }


async def _letters(desk: Desk, asked: Which, before: int | None) -> dict[str, Any]:
    store = await desk.store()
    fields = asked.fields()
    try:
        which = await asked.filter(desk)
    except NotFound:
        # Replayed or purged meanwhile: the page says so.
        return {
            "letters": [],
            "count": 0,
            "fields": fields,
            "title": "No such letters",
            "older": None,
            "newest": None,
        }
    found = await store.dead_letters.find(_page(which, before))
    shown = found[:PAGE]
    return {
        "letters": [
            (each, Payloads(desk).failure(each.errors[-1] if each.errors else None)) for each in shown
        ],
        "count": await store.dead_letters.count(_page(which, None, 10_000)),
        "fields": fields,
        "title": _title(which),
        "older": address("/dead/letters", before=shown[-1].id, **fields) if len(found) > PAGE else None,
        "newest": address("/dead/letters", **fields) if before is not None else None,
    }


def _page(which: DeadFilter, before: int | None, limit: int = PAGE + 1) -> DeadFilter:
    return msgspec.structs.replace(which, before=before, limit=limit)


def _title(which: DeadFilter) -> str:
    error = ": ".join(filter(None, (which.error, which.text)))
    parts = (which.task, error, which.queue and f"queue {which.queue}", which.reason)
    return ", ".join(filter(None, parts)) or "all dead letters"


def _chosen(which: Which, everything: bool) -> None:
    if not which.fields() and not everything:
        raise InvalidArgument("ids", [], "letters to be chosen, a filter, or everything")


def _few(ids: list[int]) -> None:
    if len(ids) > MOST_NAMED:
        raise InvalidArgument("ids", len(ids), f"at most {MOST_NAMED} letters at a time")
