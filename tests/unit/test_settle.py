"""What a finished run does to its job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.model.job import Claim, Failure
from mainspring.model.run import (
    Crashed,
    Discarded,
    Expired,
    Failed,
    Outcome,
    Reason,
    Settlement,
    Snoozed,
    Stopped,
    Succeeded,
    Verdict,
)
from mainspring.rules.settle import settle

NOW = datetime(2026, 11, 15, tzinfo=UTC)
TOOK, BACKOFF = timedelta(seconds=2), timedelta(seconds=40)
BOOM = Failure(type="ValueError", message="boom")


def claim(
    failures: int = 0, max_attempts: int = 3, crashes: int = 0, expires_in: timedelta | None = None
) -> Claim:
    return Claim(
        job_id=1, worker_id=2, fence=3, task="t", queue="q", payload=b"{}", failures=failures,
        max_attempts=max_attempts, run_at=NOW, enqueued_at=NOW, crashes=crashes, expires_in=expires_in,
    )  # fmt: skip


def settled(verdict: Verdict, **rest: object) -> Settlement:
    return Settlement(job_id=1, worker_id=2, fence=3, verdict=verdict, took=TOOK, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("failures", "outcome", "expected"),
    [
        (0, Succeeded(), settled(Verdict.SUCCEEDED)),
        (2, Succeeded(result=b"5"), settled(Verdict.SUCCEEDED, result=b"5")),
        (0, Failed(failure=BOOM), settled(Verdict.FAILED, delay=BACKOFF, failure=BOOM)),
        (1, Failed(failure=BOOM), settled(Verdict.FAILED, delay=BACKOFF, failure=BOOM)),
        (2, Failed(failure=BOOM), settled(Verdict.DEAD, failure=BOOM, reason=Reason.FAILED)),
        (5, Failed(failure=BOOM), settled(Verdict.DEAD, failure=BOOM, reason=Reason.FAILED)),
        (
            0,
            Failed(failure=BOOM, permanent=True),
            settled(Verdict.DEAD, failure=BOOM, reason=Reason.PERMANENT),
        ),
        (2, Snoozed(delay=BACKOFF * 2), settled(Verdict.SNOOZED, delay=BACKOFF * 2)),
        (2, Discarded(failure=BOOM), settled(Verdict.DISCARDED, failure=BOOM)),
        (2, Crashed(failure=BOOM), settled(Verdict.CRASHED, delay=BACKOFF, failure=BOOM)),
        (0, Expired(failure=BOOM), settled(Verdict.DEAD, failure=BOOM, reason=Reason.EXPIRED)),
        (
            0,
            Expired(failure=BOOM, started=False),
            settled(Verdict.DEAD, failure=BOOM, reason=Reason.EXPIRED, ran=False),
        ),
        (2, Stopped(), settled(Verdict.RELEASED, ran=True)),
        (0, Stopped(started=False), settled(Verdict.RELEASED, ran=False)),
    ],
)
def test_an_outcome_becomes_one_settlement(failures: int, outcome: Outcome, expected: Settlement) -> None:
    assert settle(claim(failures), outcome, took=TOOK, backoff=BACKOFF) == expected


def test_a_job_with_one_attempt_dies_of_its_first_failure() -> None:
    decided = settle(claim(max_attempts=1), Failed(failure=BOOM), took=TOOK, backoff=BACKOFF)

    assert decided.verdict is Verdict.DEAD


def test_a_rule_may_allow_more_attempts_or_fewer_than_the_job() -> None:
    def verdict(failures: int, attempts: int) -> Verdict:
        failed = Failed(failure=BOOM)
        return settle(claim(failures), failed, took=TOOK, backoff=BACKOFF, attempts=attempts).verdict

    assert [verdict(2, 10), verdict(8, 10), verdict(9, 10)] == [Verdict.FAILED, Verdict.FAILED, Verdict.DEAD]
    assert verdict(0, 1) is Verdict.DEAD


@pytest.mark.parametrize(
    ("crashes", "reason", "delay"),
    [
        (0, None, BACKOFF),
        (1, None, BACKOFF),
        (2, Reason.CRASHED, timedelta()),
        (9, Reason.CRASHED, timedelta()),
    ],
)
def test_the_third_crash_is_the_last(crashes: int, reason: Reason | None, delay: timedelta) -> None:
    decided = settle(claim(crashes=crashes), Crashed(failure=BOOM), took=TOOK, backoff=BACKOFF)

    assert (decided.verdict, decided.reason, decided.delay) == (Verdict.CRASHED, reason, delay)


@pytest.mark.parametrize(
    ("left", "verdict", "reason"),
    [
        (None, Verdict.FAILED, None),
        (TOOK + BACKOFF + timedelta(microseconds=1), Verdict.FAILED, None),
        (TOOK + BACKOFF, Verdict.DEAD, Reason.EXPIRED),
        (timedelta(0), Verdict.DEAD, Reason.EXPIRED),
    ],
)
def test_a_retry_that_would_begin_after_the_deadline_is_none(
    left: timedelta | None, verdict: Verdict, reason: Reason | None
) -> None:
    decided = settle(claim(expires_in=left), Failed(failure=BOOM), took=TOOK, backoff=BACKOFF)

    assert (decided.verdict, decided.reason) == (verdict, reason)


def test_a_job_that_fails_for_the_last_time_after_its_deadline_died_of_the_failure() -> None:
    late = claim(failures=2, expires_in=timedelta(0))

    assert settle(late, Failed(failure=BOOM), took=TOOK, backoff=BACKOFF).reason is Reason.FAILED


@pytest.mark.parametrize(("left", "delay"), [(None, 600), (1000, 600), (600, 598), (10, 8), (1, 0)], ids=str)
def test_a_snooze_ends_at_the_deadline(left: int | None, delay: int) -> None:
    held = claim(expires_in=None if left is None else timedelta(seconds=left))

    decided = settle(held, Snoozed(delay=timedelta(minutes=10)), took=TOOK, backoff=BACKOFF)

    assert (decided.verdict, decided.delay) == (Verdict.SNOOZED, timedelta(seconds=delay))
