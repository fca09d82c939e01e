"""A distributed job scheduler: cron that can't miss, can't double, and can tell you why."""

from __future__ import annotations

from mainspring.app import Mainspring
from mainspring.declare.context import Context
from mainspring.declare.handle import JobHandle
from mainspring.declare.isolation import Isolation
from mainspring.declare.options import Retry
from mainspring.version import __version__

__all__ = ["Context", "Isolation", "JobHandle", "Mainspring", "Retry", "__version__"]
