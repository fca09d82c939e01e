"""The answer of `why`: the reason in one word, in a sentence, and as fields."""

from __future__ import annotations

from enum import StrEnum

from mainspring.model.value import Value


class Because(StrEnum):
    """The reasons: first those for slots of a schedule, then those for jobs."""

    FIRED = "fired"
    COALESCED = "coalesced"
    SKIPPED = "skipped"
    BACKFILLED = "backfilled"
    TO_COME = "to_come"
    WILL_BE_SKIPPED = "will_be_skipped"
    NO_SCHEDULER = "no_scheduler"
    BEING_FIRED = "being_fired"
    NOT_A_SLOT = "not_a_slot"
    NOT_CREATED = "not_created"
    CHANGED = "changed"
    DELETED = "deleted"
    NOT_KEPT = "not_kept"
    UNREADABLE = "unreadable"
    NO_SLOT_YET = "no_slot_yet"
    ENDED = "ended"

    DUE_LATER = "due_later"
    HELD = "held"
    LIMITED = "limited"
    QUEUE_PAUSED = "queue_paused"
    RETRYING = "retrying"
    SNOOZED = "snoozed"
    SLEEPING = "sleeping"
    AWAITING = "awaiting"
    CRASHED = "crashed"
    QUEUE_UNSERVED = "queue_unserved"
    TASK_UNKNOWN = "task_unknown"
    IN_LINE = "in_line"
    RUNNING = "running"
    LEASE_ENDED = "lease_ended"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    WORKFLOW = "workflow"
    STEP = "step"


class Answer(Value, frozen=True, kw_only=True):
    """One answer; `facts` are ready for JSON."""

    because: Because
    sentence: str
    facts: dict[str, object]


def answer(because: Because, sentence: str, **facts: object) -> Answer:
    """Make an answer; unknown facts are left out."""
    known = {name: value for name, value in facts.items() if value is not None}
    return Answer(because=because, sentence=sentence, facts=known)


def answer_view(answer: Answer) -> dict[str, object]:
    """An answer as programs read it. Its facts depend on the reason."""
    return {"because": answer.because, "sentence": answer.sentence, **answer.facts}
