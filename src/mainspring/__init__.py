"""A distributed job scheduler: cron that can't miss, can't double, and can tell you why."""

from __future__ import annotations

from mainspring.app import Mainspring
from mainspring.declare.context import Context
from mainspring.declare.endings import Discard, Snooze
from mainspring.declare.handle import JobHandle
from mainspring.declare.isolation import Isolation
from mainspring.declare.limits import Limit
from mainspring.declare.retry import On, Retry
from mainspring.declare.steps import Step
from mainspring.declare.unique import Unique
from mainspring.declare.workflow import Workflow
from mainspring.model.schedule import Period
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
