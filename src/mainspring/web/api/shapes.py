"""What answers look like, as types from which the OpenAPI document is made: the fleet, access, problems."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Anything = Any


class Queue(TypedDict):
    name: str
    ready: int
    delayed: int
    running: int
    oldest_ready_at: Moment | None
    workers: int
    paused_at: Moment | None
    paused_by: str | None
    pause_note: str | None
    about: NotRequired[bool]


class Queues(TypedDict):
    items: list[Queue]


class Changed(TypedDict):
    name: str
    changed: bool


class Limit(TypedDict):
    name: str
    key: str | None
    concurrency: int | None
    rate: float | None
    per: float | None
    burst: int | None
    fair: bool
    used: int
    waiting: int
    holders: list[int]


class Limits(TypedDict):
    items: list[Limit]


class Member(TypedDict):
    id: str
    role: str
    name: str
    queues: list[str]
    tasks: list[str]
    version: str
    tzdata: str
    started_at: Moment
    lease_until: Moment
    alive: bool
    skew_seconds: float | None
    holding: int | None


class Members(TypedDict):
    items: list[Member]


class Lease(TypedDict):
    name: str
    token: int
    holder: str
    acquired_at: Moment
    expires_at: Moment
    held: bool


class Leases(TypedDict):
    items: list[Lease]


class SentEvent(TypedDict):
    name: str
    job_id: int | None
    sent: bool


class Finding(TypedDict):
    kind: str
    schedule: str
    slot_at: Moment | None
    until: Moment | None
    count: int
    detail: str


Audit = TypedDict(
    "Audit",
    {
        "from": Moment,
        "to": Moment,
        "schedules": int,
        "slots": int,
        "ok": bool,
        "sentence": str,
        "notes": list[str],
        "findings": list[Finding],
    },
)


class Check(TypedDict):
    name: str
    level: str
    sentence: str


class Checks(TypedDict):
    ok: bool
    items: list[Check]


class About(TypedDict):
    version: str
    python: str
    now: Moment
    tasks: list[str]


class Problem(TypedDict):
    title: str
    status: int
    code: str
    detail: str


class Token(TypedDict):
    id: int
    name: str
    role: str
    scopes: list[str]
    hint: str
    author: str
    created_at: Moment
    expires_at: Moment | None
    last_used_at: Moment | None
    revoked_at: Moment | None
    alive: bool


class NewToken(Token):
    secret: str


class Tokens(TypedDict):
    items: list[Token]


class Session(TypedDict):
    id: int
    name: str
    role: str
    scopes: list[str]
    token_id: int | None
    opened_at: Moment
    seen_at: Moment


class Sessions(TypedDict):
    items: list[Session]


class Ended(TypedDict):
    id: int
    ended: bool


class Me(TypedDict):
    name: str
    role: str
    via: str
    scopes: list[str]
    until: Moment | None


class ActEntry(TypedDict):
    id: int
    at: Moment
    act: str
    actor: str
    role: str
    via: str
    target: str
    address: str
    outcome: str
    details: Anything
    ended_at: Moment | None
    result: Anything


class Verified(TypedDict):
    sound: bool
    entries: int
    head: str
    bad_id: int | None
    why: str | None


class Series(TypedDict):
    since: Moment
    until: Moment
    step_seconds: float
    at: list[int]
    runs: list[int]
    succeeded: list[int]
    failed: list[int]
    died: list[int]
    wait_p50: list[float | None]
    wait_p95: list[float | None]
    wait_p99: list[float | None]
    took_p50: list[float | None]
    took_p95: list[float | None]
    took_p99: list[float | None]
    fired: NotRequired[list[int]]
    skipped: NotRequired[list[int]]
    late: NotRequired[list[int]]
    lateness_p95: NotRequired[list[float | None]]
    log_bytes_per_run: NotRequired[list[float | None]]


class Total(TypedDict):
    at: Moment
    key: NotRequired[str]
    runs: int
    succeeded: int
    failed: int
    died: int
    wait_p50: float | None
    wait_p95: float | None
    wait_p99: float | None
    took_p50: float | None
    took_p95: float | None
    took_p99: float | None


class Totals(TypedDict):
    items: list[Total]
