"""Likely slips in code: an answer with the field, the value and what is allowed, before any store opens."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring import Context, Mainspring
from mainspring.errors import InvalidArgument


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("sqlite://:memory:")


def plain(tenant: str) -> str:
    return tenant


@pytest.mark.parametrize("wrong", ["invoice", plain, None])
def test_only_a_task_can_be_scheduled(app: Mainspring, wrong: Any) -> None:
    with pytest.raises(
        InvalidArgument, match=r"schedule\.task: expected a task: a function declared with @app"
    ):
        app.schedule("x", wrong, cron="@daily")


def test_a_number_is_no_retry(app: Mainspring) -> None:
    with pytest.raises(InvalidArgument, match=r"task\.retry: .*pass Retry\(attempts=3\).*got 3"):
        app.task(retry=3)(plain)  # type: ignore[call-overload]


@pytest.mark.parametrize("wrap", [lambda task: [task], lambda task: [("a", "b")], lambda task: task])
def test_a_batch_takes_jobs_only(app: Mainspring, wrap: Any) -> None:
    task = app.task(plain)

    with pytest.raises(InvalidArgument, match=r"jobs: expected .*task\.job\(…\)"):
        app.enqueue_many(wrap(task))


def test_a_lone_job_is_no_batch(app: Mainspring) -> None:
    with pytest.raises(InvalidArgument, match="jobs: expected a list"):
        app.enqueue_many(app.task(plain).job("acme"))  # type: ignore[arg-type]


def test_a_direct_call_takes_the_context_first_where_the_function_does(app: Mainspring) -> None:
    def mail(ctx: Context, to: str) -> tuple[Context, str]:
        return ctx, to

    given: Any = object()

    assert app.task(mail)(given, to="ada") == (given, "ada")
    assert app.task(plain)("acme") == "acme"
