"""A distributed job scheduler: cron that can't miss, can't double, and can tell you why."""

from __future__ import annotations

from mainspring.app import Mainspring
from mainspring.model.schedule import Period
from mainspring.tasks.context import Context, Discard, Snooze
from mainspring.tasks.enqueue import JobHandle
from mainspring.tasks.limits import Limit
from mainspring.tasks.retry import On, Retry
from mainspring.tasks.steps import Step
from mainspring.tasks.task import Isolation
from mainspring.tasks.unique import Unique
from mainspring.tasks.workflow import Workflow
from mainspring.version import __version__

__all__ = [
    "Context",
    "Discard",
    "Isolation",
    "JobHandle",
    "Limit",
    "Mainspring",
    "On",
    "Period",
    "Retry",
    "Snooze",
    "Step",
    "Unique",
    "Workflow",
    "__version__",
]
