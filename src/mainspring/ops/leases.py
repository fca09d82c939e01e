"""Leases as people and programs read them."""

from __future__ import annotations

from mainspring.model.lease import LeaseInfo
from mainspring.ops.views import View, iso


def lease_view(lease: LeaseInfo) -> View:
    """One lease, for JSON."""
    return {
        "name": lease.name,
        "token": lease.token,
        "holder": lease.holder,
        "acquired_at": iso(lease.acquired_at),
        "expires_at": iso(lease.expires_at),
        "held": lease.held,
    }
