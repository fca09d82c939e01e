"""A store: an attribute for each noun."""

from __future__ import annotations

from mainspring.store.access import Access
from mainspring.store.alerts import Alerts
from mainspring.store.audit_log import AuditLog
from mainspring.store.calendars import Calendars
from mainspring.store.database import Database
from mainspring.store.leases import Leases
from mainspring.store.processes import Processes
from mainspring.store.runs import Runs
from mainspring.store.stats import Stats


class Nouns:
    """What is written once, over the seam of either dialect."""

    def __init__(self, database: Database) -> None:
        self.leases = Leases(database)
        self.alerts = Alerts(database)
        self.access = Access(database)
        self.audit_log = AuditLog(database)
        self.calendars = Calendars(database)
        self.stats = Stats(database)
        self.processes = Processes(database)
        self.runs = Runs(database)
