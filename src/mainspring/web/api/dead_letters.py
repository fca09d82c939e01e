"""`/dead`: the jobs that are not tried again."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Query
from pydantic import ConfigDict, Field
from starlette.responses import Response

from mainspring.admin.admin import Admin
from mainspring.admin.dead_letters import Arguments, DeadLetters, ReplayedPage
from mainspring.admin.jobs import Done
from mainspring.admin.views import DeadView
from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole
from mainspring.model.dead_letter import DeadFilter, DeadGroup, DeadJob
from mainspring.model.run import Reason
from mainspring.model.value import Value
from mainspring.web.api.answers import answers, answers_items, answers_page, items, json, page
from mainspring.web.api.jobs import one
from mainspring.web.api.values import (
    AnId,
    Body,
    Cursor,
    Id,
    Limit,
    Moment,
    Name,
    Params,
    Text,
    at,
    cursor,
    position,
)
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.problems import Problem
from mainspring.web.services import AnAdmin

MOST_AT_ONCE = 5000
routes = Routes("dead", ApiRoute, prefix="/api/v1/dead", tags=["dead letters"])


class Filter(Params):
    """Which dead letters."""

    task: Name | None = None
    queue: Name | None = None
    error: Text | None = Field(
        default=None, description="The type of the last error, with or without module."
    )
    message: Text | None = Field(default=None, description="What the last error's message holds.")
    reason: Reason | None = None
    died_after: Moment | None = None
    died_before: Moment | None = None

    def dead(self, **more: Any) -> DeadFilter:
        """As the store takes it."""
        return DeadFilter(
            task=self.task,
            queue=self.queue,
            error=self.error,
            text=self.message,
            reason=self.reason,
            died_from=at(self.died_after, "died_after"),
            died_before=at(self.died_before, "died_before"),
            **more,
        )


class Page(Filter):
    """One page of them."""

    limit: Limit = 50
    cursor: Cursor = None


class Groups(Filter):
    """The largest groups."""

    limit: Limit = 50


class Chosen(Filter):
    """Ids, or a filter, or all of them."""

    model_config = ConfigDict(extra="forbid")

    ids: list[AnId] | None = Field(default=None, min_length=1, max_length=1000)
    all: bool = False
    cursor: str | None = Field(default=None, max_length=600)
    most: int = Field(default=1000, ge=1, le=MOST_AT_ONCE, description="How many in this request.")

    def which(self) -> DeadFilter:
        """The letters that are meant, said in exactly one way: an empty body means none and not all."""
        filtered = self.dead()
        said = [self.ids is not None, self.all, filtered != DeadFilter()]
        if said.count(True) != 1:
            raise Problem(
                422, "invalid", 'which: expected ids, a filter, or "all": true, and not two of these'
            )
        ids = None if self.ids is None else tuple(self.ids)
        return msgspec.structs.replace(filtered, ids=ids)


class Edit(Body):
    """Other arguments; what is not named stays."""

    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None
    set: dict[str, Any] | None = Field(default=None, description="Single keyword arguments.")


class Replayed(Value, frozen=True, kw_only=True):
    """What one request put back into the queues; `next` is the cursor of the request after it."""

    replayed: int
    ids: tuple[int, ...]
    complete: bool
    left: int
    workflows: tuple[int, ...]
    next: str | None


class Purged(Value, frozen=True, kw_only=True):
    """How many dead letters one request deleted, and whether those were all."""

    purged: int
    complete: bool


class EditedDeadLetter(Value, frozen=True, kw_only=True):
    """A dead letter, and whether its arguments are other ones than before."""

    changed: bool
    letter: DeadView


@routes.get("", **answers_page(DeadView))
async def list_dead(admin: AnAdmin, which: Annotated[Page, Query()]) -> Response:
    """Newest first."""
    question = _question("dead", which)
    before = position(which.cursor, *question)
    chosen = which.dead(before=before if isinstance(before, int) else None, limit=which.limit)
    found = await admin.dead_letters.afind(chosen)
    following = cursor(found[-1].id, *question) if len(found) == which.limit else None
    return page([DeadView.of_letter(each) for each in found], following)


@routes.get("/groups", **answers_items(DeadGroup))
async def groups(admin: AnAdmin, which: Annotated[Groups, Query()]) -> Response:
    """By task and last error, the most frequent first."""
    found = await admin.dead_letters.agroups(which.dead(limit=which.limit))
    return items(found)


@routes.post("/replay", role=AccessRole.OPERATOR, order=DeadLetters.areplay, **answers(Replayed))
async def replay_many(admin: AnAdmin, body: Chosen) -> Response:
    """Put dead jobs back into their queues, with all attempts restored, from the newest id down. One request
    does at most `most`; go on with `next` until it is complete."""
    question = _question("replay", body)
    before = position(body.cursor, *question)
    which = msgspec.structs.replace(body.which(), before=before if isinstance(before, int) else None)
    looked_at = 0

    def enough(page: ReplayedPage) -> bool:
        nonlocal looked_at
        looked_at += page.looked_at
        return looked_at >= body.most

    done = await admin.dead_letters.areplay_all(which, page=min(500, body.most), on_page=enough)
    complete = done.looked_at < body.most
    return json(
        Replayed(
            replayed=len(done.job_ids),
            ids=done.job_ids,
            complete=complete,
            left=done.left,
            workflows=done.workflows,
            next=None if complete or done.last_id is None else cursor(done.last_id, *question),
        )
    )


@routes.post("/purge", role=AccessRole.ADMIN, order=DeadLetters.apurge, **answers(Purged))
async def purge(admin: AnAdmin, body: Chosen) -> Response:
    """Delete dead letters for good, at most `most` in one request."""
    which = body.which()
    if which.ids is not None:
        count = await admin.dead_letters.apurge(which.ids)
        return json(Purged(purged=count, complete=True))
    page_of = msgspec.structs.replace(which, limit=body.most)
    count, complete = await admin.dead_letters.apurge_page(page_of)
    return json(Purged(purged=count, complete=complete))


@routes.get("/{job_id}", **answers(DeadView))
async def show(admin: AnAdmin, job_id: Id) -> Response:
    """One dead letter, with every error it reported."""
    return json(DeadView.of_letter(await admin.dead_letters.aget(job_id)))


@routes.patch("/{job_id}", role=AccessRole.OPERATOR, order=DeadLetters.aedit, **answers(EditedDeadLetter))
async def edit(admin: AnAdmin, job_id: Id, body: Edit) -> Response:
    """Give a dead letter other arguments; those it had stay on record. They are checked where the app
    declares the task."""
    if body.args is None and body.kwargs is None and body.set is None:
        raise InvalidArgument("body", {}, "args, kwargs or set")
    letter, changed = await admin.dead_letters.aedit(
        job_id, lambda letter, had: _changed(admin, body, letter, had)
    )
    return json(EditedDeadLetter(changed=changed, letter=DeadView.of_letter(letter)))


@routes.post("/{job_id}/replay", role=AccessRole.OPERATOR, order=DeadLetters.areplay, **answers(Done))
async def replay(admin: AnAdmin, job_id: Id) -> Response:
    """Put one dead job back into its queue."""
    await admin.dead_letters.aget(job_id)
    return one(await admin.dead_letters.areplay([job_id]))


def _changed(admin: Admin, body: Edit, letter: DeadJob, had: Arguments) -> Arguments:
    args = had[0] if body.args is None else body.args
    kwargs = {**(had[1] if body.kwargs is None else body.kwargs), **(body.set or {})}
    registry = admin.context.registry
    task = None if registry is None else registry.tasks.get(letter.task)
    if task is not None:
        task.check(args, kwargs)
    return args, kwargs


def _question(route: str, which: Filter) -> tuple[object, ...]:
    return route, *sorted(which.model_dump(exclude={"cursor", "limit", "most"}, exclude_none=True).items())
