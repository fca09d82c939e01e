"""Admin: one object with an attribute for each noun."""

from __future__ import annotations

from mainspring.admin.access import Sessions, Tokens
from mainspring.admin.alerts import Alerts
from mainspring.admin.audit_log import AuditLog
from mainspring.admin.backfills import Backfills
from mainspring.admin.database import Database
from mainspring.admin.dead_letters import DeadLetters
from mainspring.admin.events import Events
from mainspring.admin.jobs import Jobs
from mainspring.admin.order import AdminContext
from mainspring.admin.processes import Leases, Processes
from mainspring.admin.queues import Limits, Queues
from mainspring.admin.schedules.orders import Schedules
from mainspring.admin.workflows.orders import Workflows


class Admin:
    """The questions and orders of one actor about one store. Methods whose names begin with `a` are awaited.
    The methods without it block until they have an answer."""

    def __init__(self, context: AdminContext) -> None:
        self.context = context
        self.jobs = Jobs(context)
        self.dead_letters = DeadLetters(context)
        self.schedules = Schedules(context)
        self.backfills = Backfills(context)
        self.workflows = Workflows(context)
        self.events = Events(context)
        self.queues = Queues(context)
        self.limits = Limits(context)
        self.processes = Processes(context)
        self.leases = Leases(context)
        self.alerts = Alerts(context)
        self.tokens = Tokens(context)
        self.sessions = Sessions(context)
        self.audit_log = AuditLog(context)
        self.database = Database(context)
