"""What is on record, compared with the code about to be deployed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.admin.deploy_check import (
    LARGEST,
    LEAST_PAGE,
    MOST_PAGE,
    Comparison,
    Problem,
    Source,
    Trouble,
    compare,
)
from mainspring.admin.views import to_json
from mainspring.errors import InvalidArgument
from mainspring.model.job import NewJob
from mainspring.model.run import Verdict
from mainspring.tasks.payload import encode
from tests.support.desk import Desk, settlement


@pytest.fixture
def app() -> Mainspring:
    app = Mainspring("sqlite://:memory:")

    @app.task
    def bill(tenant: str, month: int = 1) -> None: ...

    @app.task
    def other() -> None: ...

    return app


@pytest.fixture
def desk(store: Any, clock: Any, run: Any) -> Desk:
    return Desk(store, clock, run)


def call(*args: object, **kwargs: object) -> bytes:
    return encode(args, kwargs, field="call")


def found(app: Mainspring, *payloads: bytes, task: str = "bill") -> list[Problem]:
    comparison = Comparison(app._registry.tasks)
    for number, payload in enumerate(payloads, 1):
        comparison.look(Source.JOB, number, task, payload)
    assert comparison.checked[Source.JOB] == len(payloads)
    return comparison.problems()


def test_what_binds_is_no_problem(app: Mainspring) -> None:
    assert found(app, call("acme"), call("acme", 3), call(tenant="acme", month=3)) == []


@pytest.mark.parametrize(
    ("payload", "trouble", "sentence"),
    [
        (call(), Trouble.ARGUMENTS, "tenant: expected a value, for it has no default"),
        (call("a", year=1), Trouble.ARGUMENTS, "expected only parameters it has (month, tenant), got 'year'"),
        (call("a", 1, 2), Trouble.ARGUMENTS, "expected at most 2 positional arguments, got 3"),
        (call("a", tenant="b"), Trouble.ARGUMENTS, "tenant: expected no second value for it"),
        (call("a", "b"), Trouble.VALUE, "month: expected int, got str"),
        (call(None), Trouble.VALUE, "tenant: expected str, got null"),
        (b"{", Trouble.PAYLOAD, "its payload cannot be read"),
    ],
)
def test_what_does_not_is_told_without_its_values(
    app: Mainspring, payload: bytes, trouble: Trouble, sentence: str
) -> None:
    [problem] = found(app, payload)

    assert (problem.task, problem.trouble, problem.sentence) == ("bill", trouble, sentence)


def test_calls_with_the_same_problem_are_one_with_a_few_examples(app: Mainspring) -> None:
    [problem] = found(app, *(call(tenant="a", name=f"n{number}") for number in range(1)), call("x", name=2))
    [many] = found(app, *(call(number) for number in range(50)))

    assert (problem.count, problem.examples) == (2, ("job 1", "job 2"))
    assert (many.count, many.examples) == (50, ("job 1", "job 2", "job 3"))
    assert to_json(many)["jobs"] == 50


def test_a_task_that_is_gone_is_told(app: Mainspring) -> None:
    [problem] = found(app, call(1), b"{", task="gone")

    assert (problem.trouble, problem.count) == (Trouble.TASK, 2)


def test_payloads_cannot_make_it_keep_more_than_so_many_problems(app: Mainspring) -> None:
    problems = found(app, *(call("a", **{f"x{number}": 1}) for number in range(LARGEST + 50)))

    assert len(problems) == LARGEST + 1
    assert [each.count for each in problems if each.trouble is Trouble.OTHER] == [50]


def test_every_page_of_jobs_is_looked_at(app: Mainspring, desk: Desk) -> None:
    total = LEAST_PAGE + MOST_PAGE + 7
    desk.put_all(*(NewJob(task="bill", payload=call(tenant="a")) for _ in range(total - 2)))
    desk.put("bill", call())
    desk.put("gone", b"{}")

    comparison = desk.run(compare(desk.store, desk.clock, app._registry, dead=False))

    assert comparison.checked == {Source.JOB: total}
    assert [(each.task, each.jobs, each.examples) for each in comparison.problems()] == [
        ("bill", 1, (f"job {total - 1}",)),
        ("gone", 1, (f"job {total}",)),
    ]


def test_big_payloads_make_small_pages(app: Mainspring, desk: Desk, monkeypatch: Any) -> None:
    monkeypatch.setattr("mainspring.admin.deploy_check.PAGE_BYTES", 100 * 60_000)
    asked: list[int] = []
    jobs = desk.store.jobs.find

    async def listen(which: Any, *, at: datetime | None) -> Any:
        asked.append(which.limit)
        return await jobs(which, at=at)

    monkeypatch.setattr(desk.store.jobs, "find", listen)
    desk.put_all(*(NewJob(task="bill", payload=call("x" * 59_980)) for _ in range(160)))

    comparison = desk.run(compare(desk.store, desk.clock, app._registry, dead=False))

    assert comparison.checked == {Source.JOB: 160}
    assert asked[:2] == [LEAST_PAGE, 100]


def test_dead_letters_are_looked_at_when_asked(app: Mainspring, desk: Desk) -> None:
    claim = desk.started(task="t", payload=call())
    desk.settle(settlement(claim, Verdict.DEAD))

    quiet = desk.run(compare(desk.store, desk.clock, app._registry, dead=False))
    told = desk.run(compare(desk.store, desk.clock, app._registry, dead=True))

    assert quiet.problems() == []
    assert [(each.dead, each.examples) for each in told.problems()] == [(1, (f"dead {claim.job_id}",))]


def test_schedules_that_the_code_writes_anew_are_not_looked_at(app: Mainspring, desk: Desk) -> None:
    before = Mainspring("sqlite://:memory:")
    old = before.task(lambda name: None, name="bill")
    for name in ("kept", "edited", "stray"):
        before.schedule(name, old, every="1h", kwargs={"name": "x"})
    declared = [each.new_schedule(desk.now) for each in before._registry.schedules.values()]
    desk.run(desk.store.schedules.put(declared, at=desk.clock.stamp()))
    edited = [each for each in declared if each.name == "edited"]
    desk.run(
        desk.store.schedules.put(
            [type(edited[0])(**{**_fields(edited[0]), "priority": 3})], author="ada", at=desk.clock.stamp()
        )
    )
    app.schedule("kept", app._registry.get("bill"), every="1h", args=["acme"])
    app.schedule("edited", app._registry.get("bill"), every="1h", args=["acme"])

    comparison = desk.run(compare(desk.store, desk.clock, app._registry, dead=False))

    [problem] = comparison.problems()
    assert (problem.schedules, problem.examples) == (2, ("schedule edited", "schedule stray"))


def test_an_argument_that_is_refused_at_the_door_is_refused_here_too(app: Mainspring) -> None:
    with pytest.raises(InvalidArgument):
        app._registry.get("bill").job()
    assert found(app, call()) != []


def _fields(schedule: Any) -> dict[str, Any]:
    return {name: getattr(schedule, name) for name in schedule.__struct_fields__}
