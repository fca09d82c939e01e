"""Dead letters by their error: look at them, put them back, take them away."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Form
from starlette.requests import Request
from starlette.responses import Response

from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole
from mainspring.model.history import DeadFilter
from mainspring.model.settlement import Reason
from mainspring.ops.commands import Effect
from mainspring.web.access.identity import actor_of
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.frame.flash import done
from mainspring.web.frame.rendering import page
from mainspring.web.frame.replays import Replays
from mainspring.web.frame.shapes import plural
from mainspring.web.pages.payloads import Payloads
from mainspring.web.pages.queries import Text, Whole, address, one_of
from mainspring.web.pages.route import PageRoute
from mainspring.web.routes import Routes

GROUPS, PAGE, MOST_NAMED = 100, 50, 500
routes = Routes("dead", PageRoute, include_in_schema=False)


def asked_for(
    task: Text = None, queue: Text = None, error: Text = None, text: Text = None, reason: Text = None
) -> DeadFilter:
    """Which letters an address names."""
    one_of(Reason, reason, "reason")
    return DeadFilter(task=task, queue=queue, error=error, text=text, reason=reason)


def form_of(
    task: Annotated[Text, Form()] = None,
    queue: Annotated[Text, Form()] = None,
    error: Annotated[Text, Form()] = None,
    text: Annotated[Text, Form()] = None,
    reason: Annotated[Text, Form()] = None,
) -> DeadFilter:
    """Which letters a form names."""
    return asked_for(task, queue, error, text, reason)


def replays_of(request: Request) -> Replays:
    """Those of this process."""
    state = request.app.state
    if not hasattr(state, "replays"):
        state.replays = Replays()
    found: Replays = state.replays
    return found


Asked = Annotated[DeadFilter, Depends(asked_for)]
Formed = Annotated[DeadFilter, Depends(form_of)]
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


@routes.post("/dead/replay", role=AccessRole.OPERATOR, act="dead.replay")
async def replay(
    request: Request,
    desk: AtDesk,
    which: Formed,
    replays: TheReplays,
    ids: Annotated[list[int] | None, Form()] = None,
    everything: Annotated[bool, Form()] = False,
) -> Response:
    """Those that are named, at once; or all of a kind, in the background."""
    if ids:
        _few(ids)
        answers = await (await desk.commands()).replay(ids)
        back = sum(each.effect is Effect.REPLAYED for each in answers)
        said = f"{plural(back, 'job')} went back into the queue."
        refused = [f"job {each.job_id} {each.why}" for each in answers if each.effect is Effect.NONE]
        return done(
            request,
            address("/dead/letters", **_fields(which)),
            f"{said} {'; '.join(refused[:3])}".strip(),
            kind="warn" if refused else "good",
        )
    _chosen(which, everything)
    started = await replays.start(
        await desk.store(), desk.clock, which, title=_title(which), author=actor_of(request).name
    )
    return done(request, f"/dead/replays/{started}", "The replay has begun.", kind="info")


@routes.get("/dead/replays/{replay_id}")
async def replaying(request: Request, replays: TheReplays, replay_id: int) -> Response:
    return page(request, "replay.html", replay=replays.one(replay_id))


@routes.get("/dead/replays/{replay_id}/part")
async def replaying_part(request: Request, replays: TheReplays, replay_id: int) -> Response:
    return page(request, "parts/replay.html", replay=replays.one(replay_id))


@routes.post("/dead/replays/{replay_id}/cancel", role=AccessRole.OPERATOR, act="dead.cancel_replay")
async def cancel_replay(request: Request, replays: TheReplays, replay_id: int) -> Response:
    replays.cancel(replay_id)
    return done(request, f"/dead/replays/{replay_id}", "The replay stops.", kind="info")


@routes.post("/dead/purge", role=AccessRole.ADMIN, act="dead.purge")
async def purge(
    request: Request,
    desk: AtDesk,
    which: Formed,
    typed: Annotated[str, Form()],
    ids: Annotated[list[int] | None, Form()] = None,
    everything: Annotated[bool, Form()] = False,
) -> Response:
    """For good. Who wants it types so."""
    if typed != "purge":
        raise InvalidArgument("typed", typed, "the word purge")
    if ids:
        _few(ids)
    else:
        _chosen(which, everything)
    gone = await (await desk.commands()).purge(ids or which)
    return done(request, "/dead", f"{plural(gone, 'dead letter')} deleted for good.")


async def _groups(desk: Desk, which: DeadFilter) -> dict[str, Any]:
    queries = await desk.queries()
    found = await queries.dead_groups(which)
    return {
        "groups": [
            (
                each,
                Payloads(desk).text(each.line),
                address("/dead/letters", task=each.task, error=each.error or None, text=each.line or None),
            )
            for each in found[:GROUPS]
        ],
        "more": max(0, len(found) - GROUPS),
        "total": sum(each.count for each in found),
        "asked": which,
        "part_url": address("/dead/part", **_fields(which)),
    }


async def _letters(desk: Desk, which: DeadFilter, before: int | None) -> dict[str, Any]:
    store = await desk.store()
    found = await store.dead(_page(which, before))
    shown = found[:PAGE]
    fields = _fields(which)
    return {
        "letters": [
            (each, Payloads(desk).failure(each.errors[-1] if each.errors else None)) for each in shown
        ],
        "count": await store.count_dead(_page(which, None, 10_000)),
        "asked": which,
        "fields": fields,
        "title": _title(which),
        "older": address("/dead/letters", before=shown[-1].id, **fields) if len(found) > PAGE else None,
        "newest": address("/dead/letters", **fields) if before is not None else None,
    }


def _page(which: DeadFilter, before: int | None, limit: int = PAGE + 1) -> DeadFilter:
    return DeadFilter(**{**_fields(which), "before": before, "limit": limit})  # type: ignore[arg-type]


def _fields(which: DeadFilter) -> dict[str, str]:
    given = {
        "task": which.task,
        "queue": which.queue,
        "error": which.error,
        "text": which.text,
        "reason": which.reason,
    }
    return {name: value for name, value in given.items() if value is not None}


def _title(which: DeadFilter) -> str:
    error = ": ".join(filter(None, (which.error, which.text)))
    parts = (which.task, error, which.queue and f"queue {which.queue}", which.reason)
    return ", ".join(filter(None, parts)) or "all dead letters"


def _chosen(which: DeadFilter, everything: bool) -> None:
    if not _fields(which) and not everything:
        raise InvalidArgument("ids", [], "letters to be chosen, a filter, or everything")


def _few(ids: list[int]) -> None:
    if len(ids) > MOST_NAMED:
        raise InvalidArgument("ids", len(ids), f"at most {MOST_NAMED} letters at a time")
