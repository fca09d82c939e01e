"""A distributed job scheduler: cron that can't miss, can't double, and can tell you why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.app import Mainspring
from mainspring.errors import (
    AnswerLost,
    ClaimLost,
    DuplicateJob,
    EventTimeout,
    InvalidArgument,
    InvalidConfig,
    InvalidWorkflow,
    JobCancelled,
    JobFailed,
    KeyReused,
    LeaseHeld,
    LeaseLost,
    MainspringError,
    MoreThanOwn,
    NotFound,
    Outdated,
    ResultGone,
    SchemaMismatch,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TargetError,
    TargetInDoubt,
    TargetNotFound,
    TargetRefused,
    TargetUnavailable,
    UnknownTask,
    Unreadable,
    UsageError,
    WaitTimeout,
)
from mainspring.model.schedule import Period
from mainspring.tasks.context import Context, Discard, Snooze
from mainspring.tasks.enqueue import JobHandle
from mainspring.tasks.limits import Limit
from mainspring.tasks.retry import On, Retry
from mainspring.tasks.steps import Step
from mainspring.tasks.task import Isolation, Task
from mainspring.tasks.unique import Unique
from mainspring.tasks.workflow import Workflow
from mainspring.triggers.calendars import Calendar
from mainspring.version import __version__

if TYPE_CHECKING:
    from mainspring.process.serve import aserve, serve

__all__ = [
    "AnswerLost",
    "Calendar",
    "ClaimLost",
    "Context",
    "Discard",
    "DuplicateJob",
    "EventTimeout",
    "InvalidArgument",
    "InvalidConfig",
    "InvalidWorkflow",
    "Isolation",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "KeyReused",
    "LeaseHeld",
    "LeaseLost",
    "Limit",
    "Mainspring",
    "MainspringError",
    "MoreThanOwn",
    "NotFound",
    "On",
    "Outdated",
    "Period",
    "ResultGone",
    "Retry",
    "SchemaMismatch",
    "Snooze",
    "Step",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "TargetError",
    "TargetInDoubt",
    "TargetNotFound",
    "TargetRefused",
    "TargetUnavailable",
    "Task",
    "Unique",
    "UnknownTask",
    "Unreadable",
    "UsageError",
    "WaitTimeout",
    "Workflow",
    "__version__",
    "aserve",
    "serve",
]


def __getattr__(name: str) -> Any:
    if name in ("aserve", "serve"):  # a program that only enqueues does not load the worker
        from mainspring.process import serve as module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
