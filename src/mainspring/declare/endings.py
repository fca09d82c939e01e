"""What a handler raises to say how its run ends, when it is neither done nor failed."""

from __future__ import annotations

from datetime import timedelta

from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument
from mainspring.model.workflow import NewWorkflow

_SHORTEST_SNOOZE = timedelta(seconds=1)
"""Below that a job that only waits would keep a worker busy."""


class Snooze(Exception):
    """`raise Snooze("10m")`: call me again later. It costs no attempt, and is in the job's history."""

    def __init__(self, delay: Duration) -> None:
        self.delay = duration(delay, "snooze", least=_SHORTEST_SNOOZE)
        super().__init__(delay)


class Suspended(BaseException):
    """How `ctx.sleep()` and `ctx.wait_event()` end a run that has to wait: the job is called again later, and
    no attempt is used. It is not an Exception, so that a handler's `except Exception` does not catch it."""

    def __init__(self, delay: timedelta, *, awaits: str | None = None) -> None:
        super().__init__("the run is suspended: let this pass")
        self.delay, self.awaits = delay, awaits


class Discard(Exception):
    """`raise Discard("the order was withdrawn")`: the job is of no use any more. It ends for good, without
    more attempts and without a dead letter; the reason is in its history."""

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidArgument("discard", reason, "a reason, for those who read the job's history")
        super().__init__(reason)


class Begin(BaseException):
    """The job goes on as a workflow: how the handler of one ends. Not for users, whose `except Exception`
    must not catch it."""

    def __init__(self, workflow: NewWorkflow) -> None:
        self.workflow = workflow
        super().__init__(workflow.definition.name)
