"""What `import mainspring` gives, and what it leaves alone."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import get_args

import pytest

import mainspring
from mainspring import Context, JobHandle, Mainspring, errors
from mainspring.admin.access import RoleOption
from mainspring.model.access import AccessRole
from mainspring.model.job import OnDuplicate, OnDuplicateOption, Scope, ScopeOption
from mainspring.model.schedule import Misfire, MisfireOption, Overlap, OverlapOption
from mainspring.triggers.rolled import Roll, RollOption
from mainspring.triggers.zones import Fold, FoldOption, Gap, GapOption

PUBLIC = [
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

OF_AN_APP = [
    "aclose",
    "admin",
    "aenqueue_many",
    "aresult",
    "asend_event",
    "backfills",
    "close",
    "dead_letters",
    "enqueue_many",
    "http",
    "job",
    "jobs",
    "lease",
    "limits",
    "processes",
    "publish",
    "queue",
    "queues",
    "result",
    "schedule",
    "schedules",
    "send_event",
    "settings",
    "shell",
    "task",
    "workflow",
    "workflows",
]

OF_A_CONTEXT = [
    "acomplete",
    "asleep",
    "astep",
    "attempt",
    "await_event",
    "cancelled",
    "complete",
    "database_id",
    "effects",
    "enqueued_at",
    "fence",
    "job_id",
    "log",
    "max_attempts",
    "on_progress",
    "once",
    "period",
    "progress",
    "queue",
    "schedule_id",
    "sleep",
    "slot",
    "step",
    "stop",
    "task",
    "token",
    "trace",
    "trace_id",
    "transaction",
    "wait_event",
]


def public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def test_the_public_names_are_these():
    assert sorted(mainspring.__all__) == PUBLIC
    assert dir(mainspring) == PUBLIC


def test_the_public_names_of_an_app_are_these():
    assert public(Mainspring()) == OF_AN_APP
    assert list(inspect.signature(Mainspring).parameters) == ["url"]


def test_the_public_names_of_a_context_are_these():
    assert public(Context) == OF_A_CONTEXT


def test_the_public_names_of_a_handle_are_these():
    assert public(JobHandle) == ["aresult", "created", "id", "queue", "result", "results", "task"]


@pytest.mark.parametrize("kind", [Mainspring, Context, JobHandle, mainspring.Task, mainspring.Workflow])
def test_what_is_awaited_has_an_a_before_its_name_and_a_twin_that_blocks(kind):
    for name in public(kind):
        if inspect.iscoroutinefunction(getattr(kind, name)):
            assert name.startswith("a")
            twin = getattr(kind, name.removeprefix("a"))
            assert not inspect.iscoroutinefunction(twin)


def test_every_error_is_exported():
    own = {
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and each.__module__ == errors.__name__
    }
    assert {name for name in own if issubclass(getattr(errors, name), errors.MainspringError)} <= set(PUBLIC)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (MisfireOption, Misfire),
        (OverlapOption, Overlap),
        (GapOption, Gap),
        (FoldOption, Fold),
        (RollOption, Roll),
        (ScopeOption, Scope),
        (OnDuplicateOption, OnDuplicate),
        (RoleOption, AccessRole),
    ],
)
def test_the_types_of_closed_options_name_every_word(option, words):
    assert get_args(option) == tuple(words)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name):
    assert hasattr(mainspring, name)


@pytest.fixture(scope="module")
def loaded():
    """The modules that a fresh interpreter has after the import."""
    code = "import json, sys, mainspring; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("heavy", ["sqlite3", "asyncpg", "click", "uvloop", "hypothesis", "pytest"])
def test_importing_the_package_leaves_this_out(loaded, heavy):
    assert heavy not in loaded


def test_importing_the_package_warns_about_nothing():
    subprocess.run([sys.executable, "-W", "error", "-c", "import mainspring"], check=True)
