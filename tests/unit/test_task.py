"""Tasks: what they put into a queue, and with which options."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

import pytest

from mainspring.errors import InvalidArgument, UnknownTask, UsageError
from mainspring.model.job import NewJob
from mainspring.tasks.context import Context
from mainspring.tasks.enqueue import JobHandle
from mainspring.tasks.registry import Registry, TaskDecorator
from mainspring.tasks.retry import Retry


class Outbox:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.jobs: list[NewJob] = []
        self.txs: list[object] = []

    def enqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> list[JobHandle]:
        self.jobs += jobs
        self.txs.append(tx)
        return [JobHandle(id=len(self.jobs), task=job.task, queue=job.queue) for job in jobs]

    async def aenqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> list[JobHandle]:
        return self.enqueue_many(jobs, tx=tx)


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def task(registry: Registry, outbox: Outbox) -> TaskDecorator:
    return TaskDecorator(registry, outbox)


def send(address: str, subject: str = "hello") -> str:
    return f"{subject} {address}"


async def bill(ctx: Context, tenant: str, month: str) -> str:
    return f"{tenant} {month}"


def test_a_bare_decorator_declares_a_task_under_the_functions_name(
    task: TaskDecorator, registry: Registry
) -> None:
    declared = task(send)

    assert registry.get("send") is declared
    assert (declared.queue, declared.priority, declared.timeout, declared.retry) == (
        "default",
        0,
        None,
        Retry(),
    )


def test_options_are_kept(task: TaskDecorator) -> None:
    declared = task(name="mail.send", retry=Retry(attempts=5), timeout="2m", queue="mail", priority=9)(send)

    assert declared.job("a") == NewJob(
        task="mail.send", payload=b'{"args":["a"]}', queue="mail", priority=9, max_attempts=5
    )
    assert declared.timeout == timedelta(minutes=2)


def test_a_call_of_the_task_runs_the_plain_function(task: TaskDecorator) -> None:
    assert task(send)("a", subject="b") == "b a"
    assert asyncio.run(task(bill)(None, "acme", "2026-10")) == "acme 2026-10"


def test_enqueue_sends_one_job_and_answers_its_handle(task: TaskDecorator, outbox: Outbox) -> None:
    handle = task(bill).enqueue("acme", month="2026-10")

    assert handle == JobHandle(id=1, task="bill", queue="default")
    assert str(handle) == "job 1 (bill in default)"
    assert outbox.jobs == [
        NewJob(task="bill", payload=b'{"args":["acme"],"kwargs":{"month":"2026-10"}}', max_attempts=42)
    ]


def test_enqueue_on_an_event_loop_sends_the_same_job(task: TaskDecorator, outbox: Outbox) -> None:
    declared = task(send)

    asyncio.run(declared.aenqueue("a"))

    assert outbox.jobs == [declared.job("a")]


def test_a_callers_transaction_goes_along_with_the_job(task: TaskDecorator, outbox: Outbox) -> None:
    declared, tx = task(send), object()

    declared.using(tx=tx).using(delay="1s").enqueue("a")
    asyncio.run(declared.using(tx=tx).aenqueue("a"))
    declared.enqueue("a")

    assert outbox.txs == [tx, tx, None]


def test_a_call_that_does_not_fit_is_refused_before_it_is_sent(task: TaskDecorator, outbox: Outbox) -> None:
    with pytest.raises(InvalidArgument, match=r"bill\.month"):
        task(bill).enqueue("acme")  # type: ignore[call-arg]

    assert outbox.jobs == []


def test_an_argument_that_is_not_json_is_refused_with_its_path(task: TaskDecorator) -> None:
    with pytest.raises(InvalidArgument, match=r"send\.kwargs\.address.*datetime"):
        task(send).job(address=datetime(2026, 1, 1, tzinfo=UTC))  # type: ignore[arg-type]


def test_options_of_one_call_leave_the_task_alone(task: TaskDecorator) -> None:
    declared = task(send)

    job = declared.using(delay="10m", priority=-100, queue="slow", attempts=1).job("a")

    assert (job.delay, job.run_at) == (timedelta(minutes=10), None)
    assert (job.priority, job.queue, job.max_attempts) == (-100, "slow", 1)
    assert declared.job("a") == NewJob(task="send", payload=b'{"args":["a"]}', max_attempts=42)


def test_run_at_is_kept_in_utc(task: TaskDecorator) -> None:
    moment = datetime(2026, 11, 15, 7, tzinfo=timezone(timedelta(hours=5, minutes=30)))

    assert task(send).using(run_at=moment).job("a").run_at == datetime(2026, 11, 15, 1, 30, tzinfo=UTC)


def test_the_last_of_delay_and_run_at_counts(task: TaskDecorator) -> None:
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    job = task(send).using(run_at=moment).using(delay="5s").job("a")

    assert (job.run_at, job.delay) == (None, timedelta(seconds=5))


AWARE = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"delay": "1s", "run_at": AWARE}, "run_at"),
        ({"run_at": AWARE.replace(tzinfo=None)}, "run_at"),
        ({"run_at": "2027-01-01T00:00:00Z"}, "run_at"),
        ({"run_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))}, "run_at"),
        ({"run_at": datetime.max.replace(tzinfo=UTC)}, "run_at"),
        ({"delay": "-5m"}, "delay"),
        ({"delay": -5}, "delay"),
        ({"delay": "soon"}, "delay"),
        ({"priority": 101}, "priority"),
        ({"priority": -101}, "priority"),
        ({"priority": 1.5}, "priority"),
        ({"priority": True}, "priority"),
        ({"queue": "a b"}, "queue"),
        ({"attempts": 0}, "attempts"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    task: TaskDecorator, options: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        task(send).using(**options)  # type: ignore[arg-type]

    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"name": ""}, "task.name"),
        ({"queue": "a,b"}, "task.queue"),
        ({"priority": 1000}, "task.priority"),
        ({"timeout": "0s"}, "task.timeout"),
        ({"timeout": "forever"}, "task.timeout"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(
    task: TaskDecorator, options: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        task(**options)(send)  # type: ignore[call-overload]

    assert refusal.value.field == field


def test_a_function_without_a_name_must_be_given_one(task: TaskDecorator) -> None:
    with pytest.raises(InvalidArgument, match=r"task\.name"):
        task(lambda: None)

    assert task(name="tick")(lambda: None).name == "tick"


def test_a_name_is_taken_once(task: TaskDecorator, registry: Registry) -> None:
    task(send)

    with pytest.raises(UsageError, match="no other task has"):
        task(send)

    assert list(registry.tasks) == ["send"]


def test_an_unknown_task_is_named_with_those_that_are_known(task: TaskDecorator, registry: Registry) -> None:
    task(send)

    with pytest.raises(UnknownTask, match="no task named 'sned' is declared; declared here: send"):
        registry.get("sned")


def test_the_registry_cannot_be_written_through_its_views(registry: Registry) -> None:
    with pytest.raises(TypeError):
        registry.tasks["x"] = None  # type: ignore[index]


NAIVE = datetime(2027, 1, 1)  # noqa: DTZ001 - what is refused


def test_a_deadline_is_a_length_of_the_task_or_of_one_call(task: TaskDecorator) -> None:
    @task(expires="1h")
    def report() -> None: ...

    instant = datetime(2027, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))

    assert (report.job().expires, report.job().expires_at) == (timedelta(hours=1), None)
    assert report.using(expires="10m").job().expires == timedelta(minutes=10)
    by_instant = report.using(expires=instant).job()
    assert (by_instant.expires, by_instant.expires_at) == (None, datetime(2027, 1, 1, 10, tzinfo=UTC))
    again = report.using(expires=instant).using(expires=5).job()
    assert (again.expires, again.expires_at) == (timedelta(seconds=5), None)


def test_a_task_has_no_deadline_unless_it_is_given_one(task: TaskDecorator) -> None:
    @task
    def report() -> None: ...

    assert (report.job().expires, report.job().expires_at) == (None, None)


@pytest.mark.parametrize("expires", ["soon", 0, -1, NAIVE, datetime(1, 1, 1, tzinfo=UTC), True])
def test_a_deadline_that_is_none_is_refused(task: TaskDecorator, expires: object) -> None:
    @task
    def report() -> None: ...

    with pytest.raises(InvalidArgument, match=r"^expires: "):
        report.using(expires=expires)  # type: ignore[arg-type]
