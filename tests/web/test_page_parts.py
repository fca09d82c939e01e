"""Behind the pages: replays in the background, edits that keep secrets, charts, and what an act says."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest
from starlette.requests import Request

from mainspring.admin.health.stats import SeriesView
from mainspring.admin.redact import Redaction, restored
from mainspring.errors import NotFound
from mainspring.model.dead_letter import DeadFilter
from mainspring.store.opener import open_store
from mainspring.testing.clock import START, ManualClock
from mainspring.web.pages.background import Replays, Stage
from mainspring.web.pages.overview import charts
from mainspring.web.rendering import notice_of
from tests.support.desk import Desk
from tests.support.management import admin_of


@pytest.fixture
def desk(run: Any, clock: ManualClock) -> Any:
    store = open_store("sqlite://:memory:", clock=clock)
    try:
        run(store.migrate())
        yield Desk(store, clock, run)
    finally:
        run(store.close())


@pytest.mark.parametrize(("stopped", "stage", "left"), [(False, Stage.DONE, 0), (True, Stage.CANCELLED, 3)])
def test_a_replay_goes_through_all_or_stops_between_two_pages(
    desk: Desk, stopped: bool, stage: Stage, left: int
) -> None:
    for _ in range(5):
        desk.bury()
    replays = Replays(page=2)

    async def work() -> None:
        ada = admin_of(desk.store, desk.clock, actor="ada")
        started = await replays.start(ada, DeadFilter(), title="all")
        if stopped:
            replays.cancel(started)
        task = replays.one(started).task
        assert task is not None
        await task

    desk.run(work())
    [progress] = replays.all()
    assert (progress.stage, progress.total, progress.replayed) == (stage, 5, 5 - left)
    assert desk.count_dead(limit=10) == left
    with pytest.raises(NotFound):
        replays.one(99)


def test_what_was_hidden_while_it_was_edited_stays_what_it_was() -> None:
    had = {"key": "s3cret", "list": [{"token": "t"}, 2], "gone": 1}
    wanted = {"key": "[redacted]", "list": [{"token": "[redacted]"}, 3], "new": "[redacted]"}
    assert restored(wanted, had) == {"key": "s3cret", "list": [{"token": "t"}, 3], "new": "[redacted]"}


def test_a_text_of_which_a_part_was_hidden_stays_what_it_was_too() -> None:
    had = {"url": "amqp://ada:s3cret@mq", "list": ["password=x", 1], "same": True}
    seen = Redaction().payload(had)
    assert seen == {"url": "amqp://ada:[redacted]@mq", "list": ["password=[redacted]", 1], "same": True}
    assert restored(seen, had, seen) == had
    assert restored({**seen, "url": "amqp://other", "same": 1}, had, seen) == {  # type: ignore[dict-item]
        **had,
        "url": "amqp://other",
        "same": 1,
    }


def test_charts_leave_out_the_step_that_is_not_over_and_rows_in_which_nothing_happened() -> None:
    columns = {"succeeded": [0, 3, 9], "failed": [0, 0, 1], "died": [0, 1, 0]}
    waits = {"wait_p50": [None, 0.5, 1], "wait_p95": [None, 2.0, 1]}
    runs, none = {"runs": [0, 4, 10], "at": [0, 60, 120]}, [None] * 3
    others = {"wait_p99": none, "took_p50": none, "took_p95": none, "took_p99": none}
    span = {"since": START, "until": START, "step_seconds": 60.0}
    series = SeriesView(**span, **runs, **columns, **waits, **others)  # type: ignore[arg-type]
    throughput, latency, failures = charts(series, "1m")
    assert throughput.rows() == [("00:01", ["3"])]
    assert throughput.summary == "3 jobs succeeded, at most 3 in 1m"
    assert latency.rows() == [("00:01", ["500ms", "2s"])]
    assert failures.summary == "0 runs failed, 1 jobs became dead letters"


@pytest.mark.parametrize(
    "said", [b"", b"[]", b'["good"]', b'["loud", "text"]', b'["good", 7]', b"\xff", b"7"]
)
def test_what_nobody_of_ours_said_is_not_shown(said: bytes) -> None:
    cookie = f"mainspring_said={urlsafe_b64encode(said).decode()}".encode()
    scope = {"type": "http", "headers": [(b"cookie", cookie)]}
    assert notice_of(Request(scope)) is None
