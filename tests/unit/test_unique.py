"""Keys as users say them: the same call has the same key, however it is written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring import Context, Mainspring, Unique
from mainspring.errors import InvalidArgument
from mainspring.model.job import OnDuplicate, Scope

app = Mainspring("sqlite://:memory:")


@app.task(unique=Unique())
def sync(customer: int, *, full: bool = False) -> None: ...


@app.task(unique=Unique(by=["customer"], scope="queued", on_duplicate="replace"))
def refresh(ctx: Context, customer: int, reason: str = "") -> None: ...


@app.task
def plain(customer: int = 0) -> None: ...


def digest(job):
    return job.unique.digest


def test_the_same_call_has_the_same_key_however_it_is_written():
    assert digest(sync.job(1)) == digest(sync.job(customer=1)) == digest(sync.job(1, full=False))


def test_other_arguments_and_other_tasks_have_other_keys():
    keyed = plain.using(scope="finished")
    assert len({digest(job) for job in (sync.job(1), sync.job(2), sync.job(1, full=True), keyed.job(1))}) == 4


def test_some_arguments_may_be_left_out():
    assert digest(refresh.job(1, "a")) == digest(refresh.job(1, reason="b"))
    assert digest(refresh.job(1)) != digest(refresh.job(2))


def test_a_named_key_stands_instead_of_the_arguments():
    one = plain.using(key="night")
    assert digest(one.job(1)) == digest(one.job(2)) != digest(plain.using(key="day").job(1))
    assert one.job(1).unique.name == "night"


def test_a_named_key_is_its_tasks_own():
    assert digest(plain.using(key="x").job()) != digest(sync.using(key="x").job(1))


def test_a_task_without_uniqueness_has_no_key():
    assert plain.job(1).unique is None
    assert plain.using(delay="1m").job(1).unique is None


def test_rules_come_from_the_task_and_from_the_call():
    assert (refresh.job(1).unique.scope, refresh.job(1).unique.on_duplicate) == (
        Scope.QUEUED,
        OnDuplicate.REPLACE,
    )
    called = refresh.using(on_duplicate="error").job(1).unique
    assert (called.scope, called.on_duplicate) == (Scope.QUEUED, OnDuplicate.ERROR)
    dated = refresh.using(period="1h").job(1).unique
    assert (dated.scope, dated.period, dated.on_duplicate) == (
        Scope.PERIOD,
        timedelta(hours=1),
        OnDuplicate.REPLACE,
    )


def test_a_debounce_waits_and_replaces():
    job = plain.using(key="k", debounce="5s").job(1)

    assert job.delay == timedelta(seconds=5)
    assert (job.unique.scope, job.unique.on_duplicate) == (Scope.QUEUED, OnDuplicate.REPLACE)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"scope": "forever"}, "unique.scope"),
        ({"scope": "period"}, "unique.period"),
        ({"scope": "queued", "period": "1h"}, "unique.scope"),
        ({"on_duplicate": "drop"}, "unique.on_duplicate"),
        ({"debounce": "5s", "period": "1h"}, "unique.debounce"),
        ({"debounce": "5s", "on_duplicate": "return"}, "unique.on_duplicate"),
        ({"by": "customer"}, "unique.by"),
        ({"by": []}, "unique.by"),
        ({"period": "-1h"}, "unique.period"),
    ],
)
def test_rules_that_make_no_sense_are_refused(options, field):
    with pytest.raises(InvalidArgument) as refused:
        Unique(**options)
    assert refused.value.field == field


@pytest.mark.parametrize("key", ["", "x" * 501, "a\0b", "line\nbreak", 7])
def test_keys_that_cannot_be_kept_are_refused(key):
    with pytest.raises(InvalidArgument, match=r"^key: expected 1 to 500 printable characters"):
        plain.using(key=key)


def test_parameters_that_the_task_does_not_have_are_refused():
    with pytest.raises(InvalidArgument, match=r"unique\.by: expected one of customer"):
        app.task(name="other", unique=Unique(by=["costumer"]))(lambda customer: None)


def test_what_was_enqueued_twice_says_so(tmp_path):
    with Mainspring(f"sqlite:///{tmp_path / 'm.db'}") as own:
        task = own.task(name="sync", unique=Unique())(lambda customer: None)
        first, second = task.enqueue(7), task.enqueue(customer=7)

    assert (first.id, first.created) == (second.id, True)
    assert not second.created
