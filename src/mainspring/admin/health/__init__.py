"""The state of the database and the fleet: checks, status, statistics, and the frames of `top`."""

from __future__ import annotations
