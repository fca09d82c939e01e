"""What keeps a ready job from being claimed at all."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.admin.why.answer import Because
from mainspring.model.job import Job, JobState
from mainspring.model.process import MemberInfo, Role
from mainspring.model.value import Value


class Obstacle(Value, frozen=True, kw_only=True):
    """Why no live worker will take a job, and how many there are."""

    because: Because | None
    sentence: str
    live: int
    serving: int
    able: int


def obstacle(job: Job, members: Sequence[MemberInfo]) -> Obstacle:
    """Look for live workers of its queue that know its task; `because` is None when there are some."""
    workers = [each for each in members if each.alive and each.role is Role.WORKER]
    serving = [each for each in workers if job.queue in each.queues]
    able = [each for each in serving if job.task in each.tasks]
    because, sentence = None, ""
    if not serving:
        because, sentence = Because.QUEUE_UNSERVED, f"no live worker serves queue {job.queue}"
    elif not able:
        because, sentence = Because.TASK_UNKNOWN, f"no live worker of its queue knows task {job.task}"
    return Obstacle(
        because=because, sentence=sentence, live=len(workers), serving=len(serving), able=len(able)
    )


def hint(job: Job, members: Sequence[MemberInfo]) -> str | None:
    """For a list of jobs: what somebody should know about this one."""
    if job.state is not JobState.READY:
        return None
    return obstacle(job, members).sentence or None
