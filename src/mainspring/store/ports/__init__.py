"""The store seam, cut by who calls it. The engine never sees a cursor, a row or a driver's error.

Every method is one transaction. Batches go in and come out, in model values. `at` is the clock's
stamp: None means the database's own clock decides. The seam is internal: it may change in any
release.
"""

from __future__ import annotations

from typing import Protocol

from mainspring.store.access import Access
from mainspring.store.alerts import Alerts
from mainspring.store.audit_log import AuditLog
from mainspring.store.backfills import Backfills
from mainspring.store.calendars import Calendars
from mainspring.store.dead_letters import DeadLetters
from mainspring.store.effects import Effects
from mainspring.store.events import Events
from mainspring.store.health import Health
from mainspring.store.jobs import Jobs
from mainspring.store.leases import Leases
from mainspring.store.limits import Limits
from mainspring.store.ports.admin import Admin, Waker, Wakeups
from mainspring.store.ports.stamp import Stamp
from mainspring.store.processes import Processes
from mainspring.store.queue import Queue
from mainspring.store.queues import Queues
from mainspring.store.runs import Runs
from mainspring.store.schedules import Schedules
from mainspring.store.slots import Slots
from mainspring.store.stats import Stats
from mainspring.store.workflows.calls import Workflows

__all__ = [
    "Admin",
    "Stamp",
    "Store",
    "Waker",
    "Wakeups",
]


class Store(
    Admin,
    Wakeups,
    Protocol,
):
    """Everything an adapter provides."""

    queue: Queue
    jobs: Jobs
    dead_letters: DeadLetters
    leases: Leases
    alerts: Alerts
    access: Access
    audit_log: AuditLog
    calendars: Calendars
    effects: Effects
    events: Events
    limits: Limits
    queues: Queues
    stats: Stats
    workflows: Workflows
    processes: Processes
    runs: Runs
    health: Health
    backfills: Backfills
    schedules: Schedules
    slots: Slots
