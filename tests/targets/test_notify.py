"""Who is told of alerts: webhooks signed and checked, the rest by apprise, nothing secret in any message."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.config import AlertsConfig
from mainspring.errors import InvalidConfig, TargetError
from mainspring.model.alert import Message, MessagePart, NoteKind, Rule, Severity
from mainspring.targets.notify import AppriseNotifier, WebhookNotifier, notifiers
from mainspring.targets.outbound import Outbound
from tests.support.receiver import Receiver, receiving
from tests.targets.test_bad_inputs import cases

# Apprise asks for a module that Python is about to drop.
pytestmark = pytest.mark.filterwarnings("ignore:.*imghdr.*:DeprecationWarning")
KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
LOOPBACK = AlertsConfig(allow_private=("127.0.0.0/8",), timeout=timedelta(seconds=5))
PART = MessagePart(
    kind=NoteKind.OPENED,
    key="failed:t",
    rule=Rule.FAILED,
    subject="t",
    severity=Severity.CRITICAL,
    sentence="job 7 died",
    since=datetime(2026, 1, 1, tzinfo=UTC),
    alert_id=3,
)
MESSAGE = Message(id="ff.opened", parts=(PART,))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


def hook(receiver: Receiver, path: str = "/hunter2", **config: Any) -> WebhookNotifier:
    return WebhookNotifier(f"{receiver.url}{path}", replace(LOOPBACK, **config), SystemClock())


def test_a_webhook_gets_json_that_it_can_check(receiver: Receiver) -> None:
    asyncio.run(hook(receiver, secret=SECRET).send(MESSAGE))

    [got] = receiver.messages
    assert (got.body["type"], got.body["id"], got.body["test"]) == ("alert.opened", "ff.opened", False)
    assert got.body["data"][0]["sentence"] == "job 7 died"
    assert got.headers["idempotency-key"] == got.headers["webhook-id"] == "ff.opened"
    signed = f"ff.opened.{got.headers['webhook-timestamp']}.".encode() + receiver.raw[0]
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert got.headers["webhook-signature"] == f"v1,{expected}"


def test_what_a_webhook_refuses_is_told_without_its_path(receiver: Receiver) -> None:
    receiver.status = 503
    target = hook(receiver)

    with pytest.raises(TargetError) as refused:
        asyncio.run(target.send(MESSAGE))

    assert "answered 503" in str(refused.value)
    assert "hunter2" not in str(refused.value) + target.shown + target.key


def test_one_that_is_not_there_is_told_without_its_path() -> None:
    with receiving() as gone:
        target = hook(gone)

    with pytest.raises(TargetError) as unreached:
        asyncio.run(target.send(MESSAGE))

    assert "hunter2" not in str(unreached.value)


def test_loopback_has_to_be_allowed() -> None:
    with pytest.raises(InvalidConfig) as refused:
        WebhookNotifier("http://127.0.0.1/hunter2", AlertsConfig(), SystemClock())

    assert "alerts.allow_private names exceptions" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(("case", "url"), cases("url", typed=True))
def test_a_url_that_targets_refuse_is_no_webhook_either(case: dict[str, Any], url: str) -> None:
    if case["expect"] == "accept":
        Outbound(url, "alerts.to", timeout=timedelta(seconds=1), allow_private=())
        return
    with pytest.raises(InvalidConfig) as refused:
        Outbound(url, "alerts.to", timeout=timedelta(seconds=1), allow_private=())
    assert refused.value.field == "alerts.to"
    assert len(str(refused.value)) < 1000


def test_a_secret_that_is_none_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidConfig) as refused:
        notifiers(AlertsConfig(to=("https://example.com/",), secret="hunter2"), SystemClock(), print)

    assert refused.value.field == "alerts.secret"
    assert "hunter2" not in str(refused.value)


def test_other_kinds_go_through_apprise(receiver: Receiver) -> None:
    host = receiver.url.removeprefix("http://")
    target = AppriseNotifier(f"xml://{host}/hunter2", LOOPBACK)

    asyncio.run(target.send(MESSAGE))

    [got] = receiver.raw
    assert b"[mainspring] alert: failed t" in got
    assert b"alert (critical): job 7 died" in got
    receiver.status = 500
    with pytest.raises(TargetError) as refused:
        asyncio.run(target.send(MESSAGE))
    assert "hunter2" not in str(refused.value)


def test_apprise_has_a_limit_of_time() -> None:
    target = AppriseNotifier("json://127.0.0.1:9/", replace(LOOPBACK, timeout=timedelta(milliseconds=100)))
    go_on = threading.Event()
    target._apprise.notify = lambda **_: go_on.wait(10)

    with pytest.raises(TargetError, match=r"no answer within 0\.1 s"):
        asyncio.run(target.send(MESSAGE))
    go_on.set()


@pytest.mark.parametrize("target", ["nobody://x/y", "mailto://", "slack://x"])
def test_what_apprise_does_not_know_is_refused(target: str) -> None:
    with pytest.raises(InvalidConfig, match="apprise understands"):
        AppriseNotifier(target, LOOPBACK)


def test_the_data_of_a_message_is_json_for_anybody(receiver: Receiver, tmp_path: Path) -> None:
    odd = Message(id="i", parts=(MessagePart(**{f: getattr(PART, f) for f in PART.__struct_fields__}),) * 60)

    asyncio.run(hook(receiver).send(odd))

    body = json.loads(receiver.raw[0])
    assert (body["type"], len(body["data"]), body["more"]) == ("alert.summary", 50, 10)
