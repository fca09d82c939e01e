"""What a program asks of the store beside enqueueing: leases, and results that it waits for."""

from __future__ import annotations
