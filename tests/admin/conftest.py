"""What the tests of Admin share."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.admin.admin import Admin
from mainspring.testing.clock import ManualClock
from tests.support.desk import Desk
from tests.support.management import admin_of


@pytest.fixture
def desk(store: Any, clock: ManualClock, run: Any) -> Desk:
    """Runs the test once per backend, on an empty store."""
    return Desk(store, clock, run)


@pytest.fixture
def admin(desk: Desk) -> Admin:
    """What ann asks and orders."""
    return admin_of(desk.store, desk.clock)
