"""What may be done twice: of each statement, what a lost answer means.

A session that breaks leaves its caller without an answer. Only where the statement may have had an effect
that its caller must look up is that an `AnswerLost`. What reads is asked again, and so is what is the same
when it is done twice. Of a transaction nothing remains unless its COMMIT had been sent.
"""

from __future__ import annotations

TRIES = 3
"""Of what may be repeated: when a server has gone, every session that was at hand is dead."""
IDEMPOTENT = frozenset(
    {
        # Numbers for names and the like, which are found when they are there.
        "add_queues",
        "add_tasks",
        "add_lanes",
        "put_gates",
        "put_lines",
        "put_definition",
        "put_calendar",
        # A block of numbers that nobody uses is a gap.
        "reserve_ids",
        # A run that begins is on record as begun.
        "begin_suspect",
        # What has been ended is not there any more; a hint too many costs a look.
        "end_session",
        "end_marked",
        "notify",
    }
)
"""They write, but a second time changes nothing that counts, and answers as the first would have."""
