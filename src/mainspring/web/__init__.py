"""The doors for everything that is not this process: the HTTP API and the dashboard. Extra `[server]`."""

from __future__ import annotations
