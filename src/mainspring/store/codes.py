"""Numbers for words, and fixed values, which both dialects write. A number must never be used again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.schedule import Disposition, Misfire, NewSchedule
from mainspring.model.workflow import StepState, WorkflowState

VERDICT_CODE = {
    Verdict.SUCCEEDED: 0,
    Verdict.FAILED: 1,
    Verdict.DEAD: 2,
    Verdict.RELEASED: 3,
    Verdict.CRASHED: 4,
    Verdict.CANCELLED: 5,
    Verdict.SNOOZED: 6,
    Verdict.DISCARDED: 7,
    Verdict.EDITED: 8,
    Verdict.STARTED: 9,
}
VERDICT = {code: verdict for verdict, code in VERDICT_CODE.items()}

FINAL_STATE = {
    VERDICT_CODE[Verdict.SUCCEEDED]: JobState.SUCCEEDED,
    VERDICT_CODE[Verdict.DEAD]: JobState.DEAD,
    VERDICT_CODE[Verdict.CANCELLED]: JobState.CANCELLED,
    VERDICT_CODE[Verdict.DISCARDED]: JobState.DISCARDED,
}
FINAL_CODE = {state: code for code, state in FINAL_STATE.items()}
EDITED = VERDICT_CODE[Verdict.EDITED]

DISPOSITION_CODE = {Disposition.FIRED: 0, Disposition.SKIPPED: 1, Disposition.BACKFILLED: 2}
DISPOSITION = {code: disposition for disposition, code in DISPOSITION_CODE.items()}

STEP_CODE = {
    StepState.WAITING: 0,
    StepState.LIVE: 1,
    StepState.SUCCEEDED: 2,
    StepState.FAILED: 3,
    StepState.CANCELLED: 4,
    StepState.SKIPPED: 5,
}
STEP = {code: state for state, code in STEP_CODE.items()}

WORKFLOW_CODE = {
    WorkflowState.RUNNING: 0,
    WorkflowState.SUCCEEDED: 1,
    WorkflowState.FAILED: 2,
    WorkflowState.CANCELLED: 3,
}
WORKFLOW = {code: state for state, code in WORKFLOW_CODE.items()}
ROOT_VERDICT = {
    WorkflowState.SUCCEEDED: VERDICT_CODE[Verdict.SUCCEEDED],
    WorkflowState.FAILED: VERDICT_CODE[Verdict.DEAD],
    WorkflowState.CANCELLED: VERDICT_CODE[Verdict.CANCELLED],
}
"""The verdict of a workflow's own job, by the state of the workflow."""

CODE = "code"
"""The author of schedules that an app declares."""
COALESCE = timedelta(seconds=-1)
"""The catch-up of a spec that combines all missed slots in the newest."""
UNBOUNDED = timedelta(days=365_000)
"""A catch-up without a bound: longer than any value that a user can set. It is not NULL, because it is part
of a unique key, and because a process of an earlier version can use the value."""
AWAITING = datetime(9996, 1, 1, tzinfo=UTC)
"""The `run_at` of a job that waits for an event without a time limit."""
LIMITED = datetime(9998, 1, 1, tzinfo=UTC)
"""The `run_at` of a job that waits for its limits."""
PARKED = datetime(9997, 1, 1, tzinfo=UTC)
"""The `run_at` of a workflow's own job after the workflow has started: the job ends with the workflow."""
HELD = datetime(9999, 1, 1, tzinfo=UTC)
"""The `run_at` of a job that waits for the jobs before it."""


def spec_catch_up(schedule: NewSchedule) -> timedelta:
    """The age up to which a missed slot is opened separately; COALESCE where all missed slots are combined in
    the newest."""
    return catch_up_code(schedule.catch_up) if schedule.misfire is Misfire.ALL else COALESCE


def catch_up_code(catch_up: timedelta | None) -> timedelta:
    """The catch-up of a schedule, as the store keeps it."""
    return UNBOUNDED if catch_up is None else catch_up


def catch_up_read(code: timedelta) -> timedelta | None:
    """The catch-up of a schedule or a spec, from the value that the store keeps."""
    return None if code in (UNBOUNDED, COALESCE) else code
