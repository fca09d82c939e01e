"""From claim to settlement: jobs are claimed, run by an executor, and their results written."""

from __future__ import annotations
