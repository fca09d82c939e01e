"""Every order of every noun is on record, with its end; what only looks, and a dry run, leave nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.admin.access import Credentials
from mainspring.admin.admin import Admin
from mainspring.admin.audit_log import RecordedOrder
from mainspring.admin.backfills import BackfillPlan, PlannedSlot
from mainspring.admin.dead_letters import changed
from mainspring.admin.jobs import EnqueueRequest
from mainspring.errors import InvalidArgument, NotFound, StoreError
from mainspring.model.access import AccessRole, Actor
from mainspring.model.audit_log import AuditFilter
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.schedule import BackfillSlot, Reprocess
from mainspring.testing.clock import ManualClock
from tests.support.desk import DAY, HOUR
from tests.support.door import PAIR, make_app, open_alert, seed
from tests.support.management import orders

GREET = EnqueueRequest(task="greet", args=("Ada",))
NEVER = DeadFilter(task="nosuch")


def _plan(admin: Admin) -> BackfillPlan:
    """Of yesterday's slot; the store need not be asked for it."""
    end = admin.context.clock.now()
    slot = BackfillSlot(slot_at=end - DAY, schedule_id=1, version=1)
    return BackfillPlan(
        schedule="nightly",
        start=end - 2 * DAY,
        end=end,
        max_active=1,
        reverse=False,
        reprocess=Reprocess.NONE,
        slots=(PlannedSlot(slot=slot, run=True, why=""),),
    )


#: Each order, in an order in which each can be carried out; what it is on record to be about.
CALLS: list[tuple[str, str, str, Callable[[Admin], Any]]] = [
    ("jobs", "aenqueue", "greet fail", lambda a: a.jobs.enqueue([GREET, EnqueueRequest(task="fail")])),
    ("jobs", "areschedule", "4", lambda a: a.jobs.reschedule(4, delay="2h")),
    ("jobs", "aedit", "4", lambda a: a.jobs.edit(4, args=["Bob"], priority=3)),
    ("jobs", "aretry", "4", lambda a: a.jobs.retry(4)),
    ("jobs", "acancel", "3 4", lambda a: a.jobs.cancel([3, 4])),
    ("dead_letters", "aedit", "2", lambda a: a.dead_letters.edit(2, changed(secret="swordfish"))),
    ("dead_letters", "areplay", "2", lambda a: a.dead_letters.replay([2])),
    ("dead_letters", "areplay_all", "", lambda a: a.dead_letters.replay_all(NEVER)),
    ("dead_letters", "apurge", "", lambda a: a.dead_letters.purge(NEVER)),
    ("dead_letters", "apurge_page", "", lambda a: a.dead_letters.purge_page(NEVER)),
    (
        "schedules",
        "acreate",
        "mine",
        lambda a: a.schedules.create("mine", task="fail", every="1h"),
    ),
    ("schedules", "aedit", "nightly", lambda a: a.schedules.edit("nightly", priority=3)),
    ("schedules", "arevert", "nightly", lambda a: a.schedules.revert("nightly", note="code knows better")),
    ("schedules", "apause", "mine nightly", lambda a: a.schedules.pause(["mine", "nightly"], note="move")),
    ("schedules", "aresume", "nightly", lambda a: a.schedules.resume("nightly")),
    ("schedules", "atrigger", "nightly", lambda a: a.schedules.trigger("nightly")),
    ("schedules", "askip", "nightly", lambda a: a.schedules.skip("nightly", 2)),
    ("schedules", "aapply", "", lambda a: a.schedules.apply(prune=True)),
    ("backfills", "astart", "nightly", lambda a: a.backfills.start(_plan(a))),
    ("backfills", "ago_on", "nightly", lambda a: a.backfills.go_on(_plan(a))),
    ("backfills", "acancel", "1", lambda a: a.backfills.cancel(1)),
    ("schedules", "adelete", "mine", lambda a: a.schedules.delete("mine")),
    ("workflows", "astart", "pair", lambda a: a.workflows.start(EnqueueRequest(task=PAIR))),
    ("workflows", "apause", "5", lambda a: a.workflows.pause(5, note="wait")),
    ("workflows", "aresume", "5", lambda a: a.workflows.resume(5)),
    ("workflows", "afork", "5", lambda a: a.workflows.fork(5, "first")),
    ("workflows", "aretry", "5", lambda a: a.workflows.retry(5, ["first"])),
    ("workflows", "acancel", "5", lambda a: a.workflows.cancel(5, now=True)),
    ("events", "asend", "paid", lambda a: a.events.send("paid", {"password": "swordfish"}, job_id=1)),
    ("queues", "apause", "mail", lambda a: a.queues.pause("mail", note="moves")),
    ("queues", "aresume", "mail", lambda a: a.queues.resume("mail")),
    ("queues", "adrain", "mail", lambda a: a.queues.drain("mail", within=timedelta())),
    ("alerts", "aack", "1", lambda a: a.alerts.ack(1)),
    ("alerts", "atest", "", lambda a: a.alerts.test([Mailbox()])),
    ("tokens", "acreate", "ci", lambda a: a.tokens.create("ci", role="viewer", scopes=["jobs"])),
    ("tokens", "arevoke", "1", lambda a: a.tokens.revoke(1)),
    ("sessions", "aend", "1", lambda a: a.sessions.end(1)),
    ("sessions", "aend_of", "grace", lambda a: a.sessions.end_of("grace")),
    ("database", "arenew_identity", "", lambda a: a.database.renew_identity(force=True, note="a clone")),
]


#: Orders that are more than one transaction, do something outside the store, or are given at a high rate.
#: The purge is one by filter.
SEVERAL = {
    ("jobs", "aenqueue"),
    ("workflows", "astart"),
    ("dead_letters", "areplay_all"),
    ("dead_letters", "apurge"),
    ("schedules", "aapply"),
    ("queues", "adrain"),
    ("alerts", "atest"),
}


class Mailbox:
    """A target that takes every message."""

    shown = "mailbox"

    async def send(self, message: object) -> None: ...


class Sick:
    """A store in which nothing works; or nothing but its audit log."""

    def __init__(self, log: Any) -> None:
        self.log, self.asked = log, 0

    @property
    def audit_log(self) -> Any:
        if self.log is None:
            raise StoreError("the log is full")
        return self.log

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        raise StoreError("disk I/O error")


def filled(url: str, clock: ManualClock) -> Mainspring:
    """An app with something of everything in its store."""
    app = make_app(url, clock=clock)

    async def fill() -> None:
        await seed(app)
        await open_alert(app)
        store = await app._store()
        credentials = Credentials(store, app._clock, app._entropy, app.settings.access)
        for _ in range(2):
            await credentials.sign_in(Actor(name="grace", role=AccessRole.VIEWER, via="oidc"))

    app._portal.call(fill, instead="fill")
    return app


@pytest.fixture
def app(database_url: str, clock: ManualClock) -> Iterator[Mainspring]:
    app = filled(database_url, clock)
    yield app
    app.close()


def on_record(app: Mainspring) -> list[RecordedOrder]:
    """Oldest first."""
    return app.admin("root").audit_log.find(AuditFilter(limit=1000))[::-1]


def details(action: RecordedOrder) -> Any:
    return action.asked


def end(action: RecordedOrder) -> Any:
    assert action.end is not None
    return action.result


def sick(app: Mainspring, *, log: bool) -> tuple[Admin, Sick]:
    """An admin whose store is sick."""

    async def the_log() -> Any:
        return (await app._store()).audit_log

    admin = app.admin("ada")
    store = Sick(app._portal.call(the_log, instead="log") if log else None)

    async def opened() -> Any:
        return store

    admin.context.store = opened
    return admin, store


def test_the_table_has_every_order() -> None:
    # One that is new: say with which arguments it is given, and the tests below try it.
    assert sorted((noun, name) for noun, name, *_ in CALLS) == sorted(orders())


def test_every_order_is_on_record_with_its_end(app: Mainspring) -> None:
    admin, seen, entries = app.admin("ada", address="10.0.0.7"), 0, 0
    for noun, name, target, call in CALLS:
        call(admin)

        new = on_record(app)[seen:]
        assert [(each.entry.action, each.entry.object) for each in new] == [(orders()[noun, name], target)]
        entry = new[0].entry
        assert (new[0].outcome, entry.actor, entry.role) == ("done", "ada", "admin"), (noun, name)
        assert (entry.via, entry.address) == ("python", "10.0.0.7")
        one_transaction = (noun, name) not in SEVERAL
        assert (new[0].end is not None and new[0].end.id == entry.id) is one_transaction, (noun, name)
        seen, entries = seen + 1, entries + (1 if one_transaction else 2)
    assert app.admin().audit_log.verify().entries == entries
    everything = [text for each in on_record(app) for text in (details(each), end(each))]
    assert "swordfish" not in json.dumps(everything)


def test_an_entry_has_the_arguments_and_its_end_has_the_result(app: Mainspring) -> None:
    admin = app.admin("ada")
    admin.jobs.enqueue([GREET])
    admin.jobs.cancel([3, 1])
    admin.schedules.edit("nightly", note="less", priority=3, expected_version=1)
    admin.queues.pause("mail")
    admin.queues.pause("mail")

    assert [(details(each), end(each)) for each in on_record(app)] == [
        ({"asked": {"requests": [{"task": "greet", "args": ["Ada"]}]}}, {"jobs": [8]}),
        ({"asked": {"ids": [3, 1]}}, {"cancelled": [3], "none": [1]}),
        (
            {"asked": {"note": "less", "expected_version": 1, "priority": 3}},
            {"effect": "changed", "version": 2},
        ),
        ({"asked": {}}, {"changed": True}),
        ({"asked": {}}, {"changed": False}),
    ]


def test_an_order_that_fails_is_on_record_as_failed(app: Mainspring) -> None:
    admin, _ = sick(app, log=True)
    seen = 0
    for noun, name, _, call in CALLS:
        if (noun, name) == ("alerts", "atest"):
            continue  # it asks nothing of the store: what its targets say is its answer
        with pytest.raises(StoreError, match="disk I/O error"):
            call(admin)

        [new] = on_record(app)[seen:]
        assert (new.entry.action, new.entry.actor, new.outcome) == (orders()[noun, name], "ada", "failed")
        assert end(new) == {"error": "StoreError", "message": "disk I/O error"}
        seen += 1


def test_an_order_that_cannot_be_put_on_record_is_not_carried_out(app: Mainspring) -> None:
    admin, store = sick(app, log=False)
    for *_, call in CALLS:
        with pytest.raises(StoreError, match="the log is full"):
            call(admin)
    assert store.asked == 0
    assert on_record(app) == []


def test_what_is_refused_is_on_record_too(app: Mainspring) -> None:
    admin = app.admin("ada")
    with pytest.raises(NotFound):
        admin.jobs.cancel([3, 4242])
    with pytest.raises(InvalidArgument):
        admin.schedules.create("mine", task="greet", every="soon")

    assert [(each.entry.action, each.outcome, end(each)["error"]) for each in on_record(app)] == [
        ("jobs.cancel", "failed", "NotFound"),
        ("schedules.create", "failed", "InvalidArgument"),
    ]


def test_a_call_that_python_itself_refuses_is_no_order(app: Mainspring) -> None:
    with pytest.raises(TypeError):
        app.admin("ada").jobs.cancel()  # type: ignore[call-arg]

    assert on_record(app) == []


def test_the_secret_of_a_token_is_nowhere_in_the_log(app: Mainspring) -> None:
    made = app.admin("ada").tokens.create("ci", role="admin", expires="1d")
    app.admin("ada").events.send("paid", {"header": f"Bearer {made.secret}", "list": [made.secret]})

    for action in on_record(app):
        for entry in filter(None, (action.entry, action.end)):
            for text in (entry.details.decode(), entry.object, entry.actor, entry.address):
                assert made.secret not in text
                assert made.secret.removeprefix("ms_") not in text
    assert end(on_record(app)[0]) == {"token_id": made.token.id}


def test_a_dry_run_leaves_nothing(app: Mainspring) -> None:
    admin = app.admin("ada")

    made = admin.schedules.create("mine", task="greet", args=["x"], every="1h", dry_run=True)
    edited = admin.schedules.edit("nightly", priority=9, dry_run=True)

    assert (made.dry_run, [each.field for each in edited.differences]) == (True, ["priority"])
    assert [(each.name, each.priority) for each in admin.schedules.all()] == [("nightly", 0)]
    assert len(admin.schedules.versions("nightly")) == 1
    assert on_record(app) == []


def test_what_only_looks_leaves_nothing(app: Mainspring) -> None:
    admin = app.admin("ada")
    admin.jobs.find()
    admin.schedules.plan()
    admin.backfills.plan_left_out("nightly")
    admin.tokens.all()

    assert on_record(app) == []


def _around() -> list[object]:
    ring: list[object] = []
    ring += [ring, ring]
    return ring


@pytest.mark.parametrize(
    "odd",
    [
        *(object(), "\ud800", float("nan"), 2**5000, {1: object()}, b"bytes", _around(), bytearray(9)),
        *({"deep": "x" * 100_000}, list(range(5000)), timedelta(seconds=-1), HOUR, {"\x00": "\x1b[2J"}),
    ],
    ids=lambda odd: type(odd).__name__,
)
def test_whatever_is_given_the_order_is_on_record(app: Mainspring, odd: object) -> None:
    admin = app.admin("ada")
    try:
        admin.events.send("paid", odd)
    except InvalidArgument:
        outcome = "failed"
    else:
        outcome = "done"

    [action] = on_record(app)
    assert (action.entry.action, action.outcome) == ("events.send", outcome)
    assert isinstance(details(action), dict)


def test_edges_of_authors_are_those_of_the_actor(app: Mainspring) -> None:
    app.admin("ada").schedules.pause("nightly", note="move")
    app.admin("eve").schedules.resume("nightly")

    versions = app.schedules.versions("nightly")
    assert [each.author for each in versions][-2:] == ["ada", "eve"]


def test_who_has_no_name_is_the_user_of_the_machine(app: Mainspring) -> None:
    from mainspring.admin.order import login_name

    app.queues.pause("mail")

    [action] = on_record(app)
    assert (action.entry.actor, action.entry.via) == (login_name(), "python")
