"""What answers about alerts and the state of the whole look like."""

from __future__ import annotations

from typing import TypedDict

from mainspring.web.api.shapes import Moment, Queue


class Alert(TypedDict):
    id: int
    rule: str
    subject: str
    severity: str
    sentence: str
    state: str
    since: Moment
    opened_at: Moment | None
    closed_at: Moment | None
    repeats: int
    acked_at: Moment | None
    acked_by: str | None


class AlertNote(TypedDict):
    id: int
    alert_id: int
    kind: str
    target: str
    state: str
    message_id: str | None
    tries: int
    created_at: Moment
    due_at: Moment | None
    ended_at: Moment | None
    problem: str | None


class AlertShown(Alert):
    notes: list[AlertNote]


class Acknowledged(TypedDict):
    id: int
    changed: bool


class AlertRule(TypedDict):
    rule: str
    on: bool
    words: str
    thresholds: dict[str, str]


class AlertRules(TypedDict):
    items: list[AlertRule]


class Tried(TypedDict):
    target: str
    kind: str
    delivered: bool
    problem: str | None


class AlertTest(TypedDict):
    items: list[Tried]


class Trouble(TypedDict):
    rule: str
    subject: str
    severity: str
    since: Moment
    sentence: str


class StatusQueue(Queue):
    oldest_ready_seconds: float


class Status(TypedDict):
    at: Moment
    ok: bool
    troubles: list[Trouble]
    workers: int
    schedulers: int
    lag_seconds: float
    overdue: list[str]
    dead: int
    dead_lately: int
    queues: list[StatusQueue]
