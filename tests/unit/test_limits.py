"""Limits as users declare them, and the rule of who passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring import Context, Limit, Mainspring
from mainspring.entropy import SeededEntropy
from mainspring.errors import InvalidArgument
from mainspring.model.limit import LimitKey
from mainspring.rules.admission import LimitKeyState, WaitingLine, admit
from mainspring.worker.claimer import QueueOrder

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def app():
    return Mainspring("sqlite://:memory:")


def test_a_job_names_the_gates_of_its_task_and_its_queue(app):
    @app.task(limits=[Limit("stripe", concurrency=5), Limit("tenant", by="tenant", concurrency=2)])
    def charge(ctx: Context, tenant: str, cents: int = 0) -> None: ...

    app.queue("money", rate=100, per="1m", burst=10, fair_by="tenant")

    limit_keys = charge.using(queue="money").job("acme").limit_keys
    assert [(limit_key.name, limit_key.key) for limit_key in limit_keys] == [
        ("stripe", ""),
        ("tenant", "acme"),
        ("queue:money", ""),
        ("fair:money", "acme"),
    ]
    assert (limit_keys[0].concurrency, limit_keys[1].concurrency) == (5, 2)
    assert (limit_keys[2].rate, limit_keys[2].period, limit_keys[2].burst) == (100, timedelta(minutes=1), 10)
    assert limit_keys[3].window is not None
    assert [limit_key.name for limit_key in charge.job(tenant="acme").limit_keys] == ["stripe", "tenant"]


def test_without_limits_there_are_no_gates(app):
    @app.task
    def plain() -> None: ...

    assert plain.job().limit_keys == ()
    assert not app._registry.has_limits


@pytest.mark.parametrize(("value", "key"), [("a", "a"), (7, "7"), (None, "null"), ([1], "[1]")])
def test_a_key_is_the_value_of_the_parameter(app, value, key):
    @app.task(limits=[Limit("tenant", by="tenant", concurrency=2)])
    def charge(tenant: object) -> None: ...

    assert charge.job(value).limit_keys[0].key == key


def test_a_long_key_is_kept_short_and_apart(app):
    @app.task(limits=[Limit("tenant", by="tenant", concurrency=2)])
    def charge(tenant: str) -> None: ...

    one, two = charge.job("x" * 1000).limit_keys[0].key, charge.job("x" * 1001).limit_keys[0].key
    assert len(one) == len(two) == 64
    assert one != two


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "limit"),
        ({"concurrency": 0}, "limit.concurrency"),
        ({"concurrency": True}, "limit.concurrency"),
        ({"concurrency": 2_000_000}, "limit.concurrency"),
        ({"rate": 5}, "limit.per"),
        ({"per": "1m", "concurrency": 1}, "limit.per"),
        ({"burst": 5, "concurrency": 1}, "limit.burst"),
        ({"rate": 5, "per": "0s"}, "limit.per"),
        ({"rate": 1.5, "per": "1m"}, "limit.rate"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, field):
    with pytest.raises(InvalidArgument) as refused:
        Limit("x", **options)
    assert refused.value.field == field


def test_a_limit_by_a_parameter_that_is_not_there_is_refused(app):
    with pytest.raises(InvalidArgument, match=r"limit\.by: expected one of customer, got 'tenant'"):
        app.task(name="t", limits=[Limit("x", by="tenant", concurrency=1)])(lambda customer: None)
    with pytest.raises(InvalidArgument, match=r"task\.limits: expected a list such as"):
        app.task(name="t", limits=Limit("x", concurrency=1))(lambda: None)
    with pytest.raises(InvalidArgument, match=r"task\.limits: expected each name once"):
        app.task(name="t", limits=[Limit("x", concurrency=1)] * 2)(lambda: None)


def test_a_queue_without_rules_or_with_two_sets_of_them_is_refused(app):
    with pytest.raises(InvalidArgument, match=r"^queue: expected a concurrency, a rate or fair_by"):
        app.queue("q")
    app.queue("q", concurrency=1)
    with pytest.raises(InvalidArgument, match=r"^queue\.name: expected a queue that has no rules yet"):
        app.queue("q", concurrency=2)


@given(
    limits=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    used=st.lists(st.integers(0, 6), min_size=4, max_size=4),
    lines=st.lists(st.tuples(st.sets(st.integers(0, 3), min_size=1), st.integers(0, 12)), max_size=8),
    most=st.integers(0, 20),
)
def test_no_gate_lets_more_through_than_it_may_and_none_is_held_up_for_nothing(limits, used, lines, most):
    states = [
        LimitKeyState(limit_key=LimitKey(name=str(n), concurrency=limit), used=used[n], unclaimed=0)
        for n, limit in enumerate(limits)
    ]
    ids = iter(range(1000))
    waiting = [
        WaitingLine(
            id=number,
            limit_keys=tuple(states[n] for n in limit_keys if n < len(states)),
            jobs=[next(ids) for _ in range(count)],
        )
        for number, (limit_keys, count) in enumerate(lines)
    ]
    waiting = [line for line in waiting if line.limit_keys]

    passed = admit(waiting, most)

    for n, state in enumerate(states):
        through = sum(state in limit_keys for _, limit_keys in passed)
        assert state.used == used[n] + through
        assert through == 0 or state.used <= limits[n]
    assert len(passed) <= most
    assert len({job for job, _ in passed}) == len(passed)
    for line in waiting:
        through = [job for job, _ in passed if job in line.jobs]
        assert through == list(line.jobs[: len(through)])  # in order
        if len(passed) < most and len(through) < len(line.jobs):
            assert line.room == 0


def test_a_bucket_fills_as_time_goes_and_never_above_its_burst():
    state = LimitKeyState(
        limit_key=LimitKey(name="r", rate=60, period=timedelta(minutes=1), burst=2), used=0, unclaimed=0
    )
    state.refill(NOW)
    assert state.room == 2
    state.take()
    state.take()
    state.unclaimed = 0
    assert (state.room, state.next_token(NOW)) == (0, NOW + timedelta(seconds=1))
    state.refill(NOW + timedelta(seconds=1))
    assert state.room == 1
    state.refill(NOW + timedelta(hours=1))
    assert state.room == 2
    state.refill(NOW)  # a clock that went back takes nothing away
    assert state.room == 2


def test_a_bucket_has_no_more_than_those_who_have_not_begun_leave_of_its_burst():
    limit_key = LimitKey(name="r", rate=60, period=timedelta(minutes=1), burst=3)
    state = LimitKeyState(limit_key=limit_key, used=2, unclaimed=2, tokens=0.5, refilled_at=NOW)
    state.refill(NOW + timedelta(hours=1))
    assert (state.tokens, state.room) == (1, 1)
    state.unclaimed = 5  # given back by a worker
    state.refill(NOW + timedelta(hours=1))
    assert (state.tokens, state.room) == (0, 0)


def test_queues_with_weights_come_first_in_their_proportion():
    turns = QueueOrder(("a", "b"), (3, 1), SeededEntropy(7))
    first = [turns.order()[0] for _ in range(4000)]

    assert 2800 < first.count("a") < 3200
    assert set(turns.order()) == {"a", "b"}
    assert QueueOrder(("b", "a"), None, SeededEntropy(7)).order() == ("b", "a")
