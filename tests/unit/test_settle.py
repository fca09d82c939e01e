"""What a finished run does to its job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.lifecycle.settle import settle
from mainspring.model.failure import Failure
from mainspring.model.job import Claim
from mainspring.model.outcome import Crashed, Failed, Outcome, Stopped, Succeeded
from mainspring.model.settlement import Settlement, Verdict

NOW = datetime(2026, 11, 15, tzinfo=UTC)
TOOK, BACKOFF = timedelta(seconds=2), timedelta(seconds=40)
BOOM = Failure(type="ValueError", message="boom")


def claim(failures: int = 0, max_attempts: int = 3) -> Claim:
    return Claim(
        job_id=1, worker_id=2, fence=3, task="t", queue="q", payload=b"{}", failures=failures,
        max_attempts=max_attempts, run_at=NOW, enqueued_at=NOW,
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
        (2, Failed(failure=BOOM), settled(Verdict.DEAD, failure=BOOM)),
        (5, Failed(failure=BOOM), settled(Verdict.DEAD, failure=BOOM)),
        (0, Crashed(failure=BOOM), settled(Verdict.FAILED, delay=BACKOFF, failure=BOOM)),
        (2, Crashed(failure=BOOM), settled(Verdict.DEAD, failure=BOOM)),
        (2, Stopped(), settled(Verdict.RELEASED, ran=True)),
        (0, Stopped(started=False), settled(Verdict.RELEASED, ran=False)),
    ],
)
def test_an_outcome_becomes_one_settlement(failures: int, outcome: Outcome, expected: Settlement) -> None:
    assert settle(claim(failures), outcome, took=TOOK, backoff=BACKOFF) == expected


def test_a_job_with_one_attempt_dies_of_its_first_failure() -> None:
    decided = settle(claim(max_attempts=1), Failed(failure=BOOM), took=TOOK, backoff=BACKOFF)

    assert decided.verdict is Verdict.DEAD
