"""Dead letters by their error: look at them, give them other arguments, replay them, delete them."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import Depends, Form
from pydantic import BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.dead_letters import Arguments, DeadLetters
from mainspring.admin.jobs import Effect
from mainspring.admin.redact import restored
from mainspring.admin.views import call_view
from mainspring.errors import InvalidArgument, NotFound, UnknownTask
from mainspring.model.access import AccessRole
from mainspring.model.dead_letter import DeadFilter, DeadJob
from mainspring.model.run import Reason
from mainspring.model.value import Value
from mainspring.tasks.payload import read_json
from mainspring.tasks.task import Task
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.background import Replays
from mainspring.web.pages.forms import LARGEST_ID, JobId, Sent, Text, Whole, address, one_of, or_none
from mainspring.web.pages.route import PageRoute
from mainspring.web.privacy import Payloads, Plain
from mainspring.web.rendering import done, json_text, page, plural
from mainspring.web.services import AnAdmin, Services, TheServices

GROUPS, PAGE, MOST_NAMED = 100, 50, 500
LINE = 200
LikeId = Annotated[Sent | None, BeforeValidator(or_none), Field(ge=1, le=LARGEST_ID)]
routes = Routes("dead", PageRoute, include_in_schema=False)
_ARRAY, _OBJECT = "a JSON array", "a JSON object"


class Which(Value, frozen=True, kw_only=True):
    """Which letters a request asks for, as it says it: addresses and forms of the page repeat these words."""

    said: DeadFilter
    like: int | None = None
    """The id of a letter: those of its task whose last error is like its own. Addresses name it, and not
    what the error says."""

    async def filter(self, services: Services) -> DeadFilter:
        """For the store; NotFound when the letter that is named has gone."""
        if self.like is None:
            return self.said
        letter = await services.questions.dead_letters.aget(self.like)
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


class DiffLine(NamedTuple):
    """A line of the difference: `sign` is +, - or nothing."""

    sign: str
    text: str


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
async def groups(request: Request, services: TheServices, which: Asked, replays: TheReplays) -> Response:
    return page(request, "dead.html", **await _groups(services, which), replays=replays.all())


@routes.get("/dead/part")
async def groups_part(request: Request, services: TheServices, which: Asked, replays: TheReplays) -> Response:
    return page(request, "parts/dead.html", **await _groups(services, which), replays=replays.all())


@routes.get("/dead/letters")
async def letters(request: Request, services: TheServices, which: Asked, before: Whole = None) -> Response:
    return page(request, "letters.html", **await _letters(services, which, before))


@routes.post("/dead/replay", role=AccessRole.OPERATOR, order=DeadLetters.areplay)
async def replay(
    request: Request,
    services: TheServices,
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
    wanted = await which.filter(services)
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
    services: TheServices,
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
    gone = await admin.dead_letters.apurge(ids or await which.filter(services))
    return done(request, "/dead", f"{plural(gone, 'dead letter')} deleted for good.")


@routes.get("/dead/{job_id}/edit", role=AccessRole.OPERATOR)
async def edit(request: Request, services: TheServices, job_id: JobId) -> Response:
    letter = await services.questions.dead_letters.aget(job_id)
    had = call_view(letter.payload)
    shown = Payloads(services).call(letter.payload)
    return page(
        request,
        "edit.html",
        letter=letter,
        args=Plain(json_text(shown["args"] or [])),
        kwargs=Plain(json_text(shown["kwargs"] or {})),
        wrong=None,
        lines=(),
        checked=_task(services, letter) is not None,
        unreadable=had["args"] is None,
    )


@routes.post("/dead/{job_id}/edit", role=AccessRole.OPERATOR, order=DeadLetters.aedit)
async def write(
    request: Request,
    services: TheServices,
    admin: AnAdmin,
    job_id: JobId,
    args: Annotated[str, Form()] = "[]",
    kwargs: Annotated[str, Form()] = "{}",
    step: Annotated[str, Form()] = "look",
) -> Response:
    """First the difference is shown; with `step` write or replay it is written."""
    letter = await services.questions.dead_letters.aget(job_id)
    task = _task(services, letter)

    def change(found: DeadJob, had: Arguments) -> Arguments:
        wanted = _read(args, kwargs)
        seen = Payloads(services).call(found.payload)
        back: Arguments = (
            restored(wanted[0], had[0], seen["args"]),  # type: ignore[assignment]
            restored(wanted[1], had[1], seen["kwargs"]),
        )
        if task is not None:
            task.check(*back)
        return back

    values: dict[str, Any] = {
        "letter": letter,
        # What the same request said.
        "args": Plain(args),
        "kwargs": Plain(kwargs),
        "checked": task is not None,
        "unreadable": False,
    }
    try:
        now = change(letter, _had(letter))
    except InvalidArgument as wrong:
        return page(request, "edit.html", status=422, **values, wrong=wrong, lines=())
    if step not in ("write", "replay"):
        return page(request, "edit.html", **values, wrong=None, lines=_difference(services, letter, now))
    _, changed = await admin.dead_letters.aedit(job_id, change)
    said = "Its arguments were changed" if changed else "Its arguments were these already"
    if step == "replay":
        await admin.dead_letters.areplay(job_id)
        said += ", and it went back into its queue"
    return done(request, f"/jobs/{job_id}", f"{said}.")


async def _groups(services: Services, which: Which) -> dict[str, Any]:
    found = await services.questions.dead_letters.agroups(await which.filter(services))
    return {
        "groups": [
            (each, each.line, address("/dead/letters", like=each.newest_id)) for each in found[:GROUPS]
        ],
        "more": max(0, len(found) - GROUPS),
        "total": sum(each.count for each in found),
        "asked": which.fields(),
        "part_url": address("/dead/part", **which.fields()),
    }


async def _letters(services: Services, asked: Which, before: int | None) -> dict[str, Any]:
    store = await services.store()
    fields = asked.fields()
    try:
        which = await asked.filter(services)
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
            (each, Payloads(services).failure(each.errors[-1] if each.errors else None)) for each in shown
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


def _read(args: str, kwargs: str) -> Arguments:
    listed = read_json(args, "args", expected=_ARRAY)
    named = read_json(kwargs, "kwargs", expected=_OBJECT)
    if not isinstance(listed, list):
        raise InvalidArgument("args", args, _ARRAY)
    if not isinstance(named, dict):
        raise InvalidArgument("kwargs", kwargs, _OBJECT)
    return listed, named


def _had(letter: DeadJob) -> Arguments:
    seen = call_view(letter.payload)
    return seen["args"] or [], seen["kwargs"] or {}


def _task(services: Services, letter: DeadJob) -> Task[..., Any] | None:
    """What the task may be given, where this process knows it."""
    try:
        return services.app._registry.get(letter.task)
    except UnknownTask:
        return None


def _difference(services: Services, letter: DeadJob, now: Arguments) -> list[DiffLine]:
    old = json_text(Payloads(services).call(letter.payload)).splitlines()
    new = json_text(Payloads(services).value({"args": now[0], "kwargs": now[1]})).splitlines()
    return [DiffLine(each[0].strip(), each[2:]) for each in difflib.ndiff(old, new) if each[0] in "+- "]
