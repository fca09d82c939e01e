"""`mainspring next`: what fires when, without a store."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.cli.conftest import Answer, Shell

Call = Callable[..., Answer]


def test_the_odd_night_is_marked(call: Call) -> None:
    words = ["--tz", "America/New_York", "--after", "2026-03-07T00:00:00Z", "--count", "3", "--json"]

    answer = call("next", "30 2 * * *", *words)

    assert answer.data == {
        "fires": [
            {"at": "2026-03-07T07:30:00Z", "local": "2026-03-07T02:30:00-05:00", "note": None},
            {"at": "2026-03-08T07:00:00Z", "local": "2026-03-08T03:00:00-04:00", "note": "gap: shifted"},
            {"at": "2026-03-09T06:30:00Z", "local": "2026-03-09T02:30:00-04:00", "note": None},
        ]
    }


@pytest.mark.parametrize(
    ("expression", "options", "expected"),
    [
        ("30 2 * * *", "--after 2026-03-07T12:00:00Z --gap shift", ["2026-03-08T07:00:00Z"]),
        ("30 2 * * *", "--after 2026-03-07T12:00:00Z --gap skip", ["2026-03-09T06:30:00Z"]),
        ("30 1 * * *", "--after 2026-10-31T12:00:00Z", ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]),
        ("30 1 * * *", "--after 2026-10-31T12:00:00Z --fold second", ["2026-11-01T06:30:00Z"]),
        ("30 1 * * *", "--after 2026-11-01T05:30:00Z --fold both", ["2026-11-01T06:30:00Z"]),
    ],
)
def test_a_policy_can_be_tried_out(call: Call, expression: str, options: str, expected: list[str]) -> None:
    count = str(len(expected))

    answer = call("next", expression, "--tz", "America/New_York", "-n", count, "--json", *options.split())

    assert [fire["at"] for fire in answer.data["fires"]] == expected


def test_people_get_a_table(call: Call) -> None:
    answer = call("next", "30 2 * * *", "--tz", "Europe/Berlin", "--after", "2026-10-24T12:00:00Z", "-n", "2")

    assert answer.out.splitlines() == [
        "UTC                   Europe/Berlin                 NOTE",
        "2026-10-25 00:30:00Z  Sun 2026-10-25 02:30:00 CEST  fold: first",
        "2026-10-26 01:30:00Z  Mon 2026-10-26 02:30:00 CET   -",
    ]


def test_five_fires_after_now_are_the_default(call: Call) -> None:
    fires = call("next", "* * * * * *", "--json").data["fires"]

    assert len(fires) == 5
    assert abs((datetime.fromisoformat(fires[0]["at"]) - datetime.now(UTC)).total_seconds()) < 60


def test_h_is_hashed_from_the_name(call: Call) -> None:
    words = ["next", "H H * * *", "--after", "2026-03-07T00:00:00Z", "--json", "--name"]

    assert call(*words, "alpha").data == call(*words, "alpha").data
    assert call(*words, "alpha").data != call(*words, "beta").data


def test_an_interval_counts_from_its_anchor(call: Call) -> None:
    answer = call(
        "next", "--every", "90m", "--anchor", "2026-03-29T00:15:00+01:00", "--after", "2026-03-29T00:15:00Z",
        "--tz", "Europe/Berlin", "-n", "2", "--json",
    )  # fmt: skip

    assert [fire["local"] for fire in answer.data["fires"]] == [
        "2026-03-29T01:45:00+01:00",
        "2026-03-29T04:15:00+02:00",
    ]


def test_no_store_is_opened(bare_shell: Shell) -> None:
    answer = bare_shell("next", "@daily", "--json", DATABASE_URL="postgresql://127.0.0.1:1/none")

    assert answer.code == 0
    assert len(json.loads(answer.out)["fires"]) == 5
    assert [path.name for path in bare_shell.folder.iterdir()] == ["shop.py"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one of a cron EXPRESSION, --every and --rrule"),
        (["@daily", "--every", "1h"], "one of a cron EXPRESSION, --every and --rrule"),
        (["60 * * * *"], "minute field at column 1"),
        (["@daily", "--tz", "Mars/Phobos"], "tz: expected an IANA time zone"),
        (["@daily", "--gap", "forward"], "gap: expected one of shift, skip"),
        (["@daily", "--gap", ""], "gap: expected one of shift, skip"),
        (["@daily", "--fold", "last"], "fold: expected one of first, second, both"),
        (["@daily", "--name", "a b"], "schedule.name"),
        (["@daily", "--after", "yesterday"], "after: expected an instant"),
        (["@daily", "--anchor", "2026-03-01T00:00:00Z"], "--anchor: expected only with --every"),
        (["@daily", "--count", "0"], "--count"),
        (["@daily", "--count", "1001"], "--count"),
        (["H * * * *"], "a schedule's name to go with H"),
        (["--every", "soon"], "every: expected a duration"),
        (["--every", "1ms"], "every: expected from 1s"),
        (["--every", "1h", "--gap", "skip"], "--gap: expected only with a cron expression"),
        (["--every", "1h", "--anchor", "2026-03-01"], "anchor: expected an instant"),
        (["--every", "1h", "--tz", "Mars/Phobos"], "tz: expected an IANA time zone"),
        (["--every", "1h", "--dtstart", "2026-03-01T09:00"], "--dtstart: expected only with --rrule"),
        (["--rrule", "FREQ=DAILY"], "--rrule: expected with --dtstart"),
        (["--rrule", "FREQ=DAILY", "--dtstart", "2026-03-01"], "dtstart: expected an instant"),
        (["--rrule", "FREQ=DAILY", "--fold", "both"], "--fold: expected only with a cron expression"),
        (["--rrule", "FREQ=DAILY", "--every", "1h"], "one of a cron EXPRESSION, --every and --rrule"),
    ],
)
def test_what_cannot_be_accepted_is_one_line_and_exit_code_2(call: Call, words: list[str], said: str) -> None:
    answer = call("next", *words)

    assert (answer.code, answer.out) == (2, "")
    assert len(answer.err.splitlines()) == 1
    assert said in answer.err


@pytest.mark.parametrize("start", ["2026-03-28T02:30", "2026-03-28T01:30:00Z"])
def test_a_recurrence_rule_can_be_tried_out(call: Call, start: str) -> None:
    words = ["--tz", "Europe/Berlin", "--after", "2026-03-28T12:00:00Z", "-n", "1", "--json"]

    answer = call("next", "--rrule", "FREQ=DAILY", "--dtstart", start, *words)

    assert answer.data["fires"] == [
        {"at": "2026-03-29T01:30:00Z", "local": "2026-03-29T03:30:00+02:00", "note": "gap: shifted"}
    ]
