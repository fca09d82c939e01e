"""What targets tell the other side of the slot that their job stands for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from mainspring import Context, Period
from mainspring.targets.http import HttpTarget
from mainspring.targets.shell import ShellTarget
from mainspring.targets.task import slot_words
from tests.support.http_server import answers, serving

HOUR = timedelta(hours=1)
SLOT = datetime(2030, 1, 1, 12, tzinfo=UTC)
COMBINED = Period(end=SLOT, start=SLOT - 4 * HOUR, previous=SLOT - HOUR, since=SLOT - 3 * HOUR, missed=3)
WORDS = {
    "slot": "2030-01-01T12:00:00+00:00",
    "previous_slot": "2030-01-01T11:00:00+00:00",
    "period_start": "2030-01-01T08:00:00+00:00",
    "missed_since": "2030-01-01T09:00:00+00:00",
    "missed": "3",
}


def test_a_job_put_in_by_hand_says_nothing(context: Callable[..., Context]) -> None:
    assert slot_words(context()) == {}


def test_what_is_not_known_is_left_out(context: Callable[..., Context]) -> None:
    assert slot_words(context(slot=SLOT, period=Period(end=SLOT))) == {"slot": WORDS["slot"]}
    assert slot_words(context(slot=SLOT, period=COMBINED)) == WORDS


def test_a_call_says_it_in_headers(context: Callable[..., Context], run: Any) -> None:
    async def go() -> Any:
        async with serving(answers(200, b"")) as server:
            url = f"http://127.0.0.1:{server.port}/hook"
            target = HttpTarget("notify", url, ports=[server.port], allow_private=["127.0.0.0/8"])
            await target.run(context(slot=SLOT, period=COMBINED, schedule_id=1), {})
            return server.requests

    [request] = run(go())
    told = {name: value for name, value in request.headers.items() if name.startswith("mainspring-")}
    assert told == {f"mainspring-{name.replace('_', '-')}": word for name, word in WORDS.items()}


def test_a_program_sees_it_in_its_surroundings(context: Callable[..., Context], run: Any) -> None:
    result = run(ShellTarget("env", ["env"]).run(context(slot=SLOT, period=COMBINED), {}))

    seen = dict(line.split("=", 1) for line in str(result["stdout"]).splitlines())
    told = {
        name: value for name, value in seen.items() if name.startswith("MAINSPRING_") and "JOB" not in name
    }
    assert told == {f"MAINSPRING_{name.upper()}": word for name, word in WORDS.items()}
