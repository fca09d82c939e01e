"""Small numbers that stand for words in history rows; both dialects use the same. Never reuse one."""

from __future__ import annotations

from mainspring.model.job import JobState
from mainspring.model.schedule import Disposition
from mainspring.model.settlement import Verdict

VERDICT_CODE = {
    Verdict.SUCCEEDED: 0,
    Verdict.FAILED: 1,
    Verdict.DEAD: 2,
    Verdict.RELEASED: 3,
    Verdict.CRASHED: 4,
    Verdict.CANCELLED: 5,
}
VERDICT = {code: verdict for verdict, code in VERDICT_CODE.items()}

FINAL_STATE = {
    VERDICT_CODE[Verdict.SUCCEEDED]: JobState.SUCCEEDED,
    VERDICT_CODE[Verdict.DEAD]: JobState.DEAD,
    VERDICT_CODE[Verdict.CANCELLED]: JobState.CANCELLED,
}
FINAL_CODE = {state: code for code, state in FINAL_STATE.items()}

DISPOSITION_CODE = {Disposition.FIRED: 0, Disposition.SKIPPED: 1}
DISPOSITION = {code: disposition for disposition, code in DISPOSITION_CODE.items()}
