"""Events that operators send, and what is shown of jobs that wait for them."""

from __future__ import annotations

import pytest

from mainspring.admin.admin import Admin
from mainspring.admin.events import Events, SentView
from mainspring.admin.views import to_json
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.job import JobState
from mainspring.model.run import FOREVER, Verdict
from tests.support.desk import Desk

MISSING = 999_999


@pytest.fixture
def events(admin: Admin) -> Events:
    return admin.events


def waiting(desk: Desk) -> int:
    claim = desk.started()
    desk.end(claim, Verdict.SNOOZED, delay=FOREVER, awaits="approved")
    return claim.job_id


def test_an_event_is_sent_once_and_says_so(desk: Desk, events: Events) -> None:
    job_id = waiting(desk)

    first = desk.run(events.asend("approved", {"by": "ann"}, job_id=job_id))
    second = desk.run(events.asend("approved", job_id=job_id))
    everybody = desk.run(events.asend("approved"))

    assert to_json(SentView.of(first)) == {"name": "approved", "job_id": job_id, "sent": True}
    assert to_json(SentView.of(second)) == {"name": "approved", "job_id": job_id, "sent": False}
    assert to_json(SentView.of(everybody)) == {"name": "approved", "job_id": None, "sent": True}
    assert desk.run(desk.store.events.get(job_id, "approved")) == b'{"by":"ann"}'
    assert desk.job(job_id).state is JobState.READY


def test_what_is_wrong_is_refused_before_anything_is_written(desk: Desk, events: Events) -> None:
    with pytest.raises(NotFound):
        desk.run(events.asend("approved", job_id=MISSING))
    with pytest.raises(InvalidArgument):
        desk.run(events.asend("a b"))
    with pytest.raises(InvalidArgument):
        desk.run(events.asend("approved", object()))

    assert desk.run(desk.store.events.get(MISSING, "approved")) is None


def test_a_job_that_waits_is_shown_with_its_event(desk: Desk, admin: Admin) -> None:
    job_id, other = waiting(desk), desk.put()
    jobs = desk.jobs()

    assert desk.run(admin.jobs.aget(job_id)).awaits == "approved"
    assert desk.run(admin.jobs.aget(other)).awaits is None
    hints = desk.run(admin.jobs.ahints(jobs))
    assert hints[job_id] == "waits for event approved"
    assert "no live worker" in hints[other]
