"""What a finished run does to its job."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from mainspring.model.job import Claim
from mainspring.model.outcome import Failed, Outcome, Settled, Stopped, Succeeded
from mainspring.model.settlement import Settlement, Verdict


def settle(claim: Claim, outcome: Outcome, *, took: timedelta, backoff: timedelta) -> Settlement:
    """Decide what is written; `backoff` is how long to wait if the job is to be tried again."""
    # Each case spells out the whole value: a shared partial would double the cost, once per job.
    match outcome:
        case Succeeded() | Settled():
            return Settlement(
                job_id=claim.job_id,
                worker_id=claim.worker_id,
                fence=claim.fence,
                verdict=Verdict.SUCCEEDED,
                took=took,
                result=outcome.result,
            )
        case Failed():
            last = claim.attempt >= claim.max_attempts
            return Settlement(
                job_id=claim.job_id,
                worker_id=claim.worker_id,
                fence=claim.fence,
                verdict=Verdict.DEAD if last else Verdict.FAILED,
                took=took,
                delay=_AT_ONCE if last else backoff,
                failure=outcome.failure,
            )
        case Stopped():
            return Settlement(
                job_id=claim.job_id,
                worker_id=claim.worker_id,
                fence=claim.fence,
                verdict=Verdict.RELEASED,
                took=took,
                ran=outcome.started,
            )
        case _:
            assert_never(outcome)


_AT_ONCE = timedelta()
