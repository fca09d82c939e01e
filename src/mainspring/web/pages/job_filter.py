"""Which jobs somebody looks for, as an address says it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends

from mainspring.errors import InvalidArgument
from mainspring.model.job import JobFilter, JobState
from mainspring.web.pages.queries import Text, Whole, address, one_of

PAGE = 50
_HEXADECIMAL = re.compile(r"[0-9a-f]{1,16}")
_MOMENT = "a moment in UTC, such as 2026-03-01T09:00"


class Wanted:
    """The fields of the search, as they were given."""

    def __init__(
        self,
        state: Text = None,
        task: Text = None,
        queue: Text = None,
        key: Text = None,
        schedule: Text = None,
        worker: Text = None,
        since: Text = None,
        until: Text = None,
        before: Whole = None,
    ) -> None:
        self.state, self.before = state, before
        self.fields = {
            "task": task,
            "queue": queue,
            "key": key,
            "schedule": schedule,
            "worker": worker,
            "since": since,
            "until": until,
        }

    @property
    def narrowed(self) -> bool:
        """Whether anything but a state is asked for."""
        return any(value is not None for value in self.fields.values())

    def filter(self) -> JobFilter:
        """For the store."""
        given = self.fields
        return JobFilter(
            state=one_of(JobState, self.state, "state"),
            task=given["task"],
            queue=given["queue"],
            key=given["key"],
            schedule=given["schedule"],
            worker=_member(given["worker"]),
            since=_moment(given["since"], "since"),
            until=_moment(given["until"], "until"),
            before=self.before,
            limit=PAGE,
        )

    def address(self, path: str, *, state: str | None, before: int | None = None) -> str:
        """The same search elsewhere."""
        return address(path, state=state, before=before, **self.fields)


TheWanted = Annotated[Wanted, Depends()]


def _moment(text: str | None, field: str) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(field, text, _MOMENT) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _member(text: str | None) -> int | None:
    if text is None:
        return None
    if not _HEXADECIMAL.fullmatch(text):
        raise InvalidArgument("worker", text, "an id as the page of workers shows it")
    return int(text, 16)
