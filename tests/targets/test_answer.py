"""What an answer means for the job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import TargetInDoubt, TargetRefused, TargetUnavailable
from mainspring.targets.answer import LONGEST_WAIT, check_answer, read_answer, retry_after

NOW = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)


def judged(status: int, *headers: tuple[bytes, bytes], body: bytes = b"") -> object:
    return check_answer(
        read_answer(status, headers, body, truncated=False), "POST https://example.com/", now=NOW
    )


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_success_is_a_success(status: int) -> None:
    assert judged(status)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_what_may_pass_is_tried_again(status: int) -> None:
    with pytest.raises(TargetUnavailable) as told:
        judged(status)

    assert not told.value.permanent
    assert told.value.retry_after is None


@pytest.mark.parametrize("status", [301, 302, 304, 307, 400, 401, 403, 404, 409, 410, 418, 422, 451])
def test_what_will_not_change_is_permanent(status: int) -> None:
    with pytest.raises(TargetRefused) as told:
        judged(status, (b"Retry-After", b"5"))

    assert told.value.permanent


def test_a_redirect_says_where_to_and_is_not_followed() -> None:
    with pytest.raises(
        TargetRefused, match=r"answered 302, to 'http://169\.254\.169\.254/'; redirects are not"
    ):
        judged(302, (b"Location", b"http://169.254.169.254/"))


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("120", timedelta(minutes=2)),
        ("0", timedelta()),
        (" 7 ", timedelta(seconds=7)),
        ("1000000000", LONGEST_WAIT),
        ("9" * 400, LONGEST_WAIT),
        ("Sun, 15 Nov 2026 07:10:00 GMT", timedelta(minutes=10)),
        ("Sun, 15 Nov 2026 06:00:00 GMT", timedelta()),
        ("Sun, 15 Nov 9999 06:00:00 GMT", LONGEST_WAIT),
        ("-5", None),
        ("soon", None),
        ("²", None),
        ("", None),
        (None, None),
    ],
)
def test_how_long_a_server_wants_us_to_wait(text: str | None, wait: timedelta | None) -> None:
    assert retry_after(text, NOW) == wait


def test_only_headers_worth_keeping_are_kept_and_cut() -> None:
    kept = read_answer(
        200, [(b"Set-Cookie", b"secret"), (b"Content-Type", b"a" * 5000)], b"", truncated=False
    )

    assert kept.headers == {"content-type": "a" * 200}


def test_a_body_is_kept_as_text_that_any_store_takes() -> None:
    kept = read_answer(200, [], b"a\x00b\xff\ncaf\xc3\xa9", truncated=True)

    assert kept.result() == {
        "status": 200,
        "headers": {},
        "body": "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}\ncafé",
        "truncated": True,
    }


def test_doubt_ends_the_job_unless_a_second_call_is_harmless() -> None:
    harmful, harmless = TargetInDoubt("it", harmless=False), TargetInDoubt("it", harmless=True)

    assert (harmful.permanent, harmless.permanent) == (True, False)
    assert "not tried again" in str(harmful)
    assert "not tried again" not in str(harmless)
