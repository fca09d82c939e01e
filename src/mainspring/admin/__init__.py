"""Questions and orders about one store, by noun; what an order changes is in the audit log.

The command line, the HTTP API, the dashboard and a program's own code all come in here.
"""

from __future__ import annotations

from mainspring.admin.admin import Admin
from mainspring.admin.order import AdminContext

__all__ = ["Admin", "AdminContext"]
