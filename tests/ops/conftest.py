"""What the tests of ops share."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.ops.commands import Commands
from mainspring.ops.queries import Queries
from mainspring.testing.clock import ManualClock
from tests.support.desk import Desk


@pytest.fixture
def desk(store: Any, clock: ManualClock, run: Any) -> Desk:
    """Runs the test once per backend, on an empty store."""
    return Desk(store, clock, run)


@pytest.fixture
def commands(desk: Desk) -> Commands:
    return Commands(desk.store, desk.clock)


@pytest.fixture
def queries(desk: Desk) -> Queries:
    return Queries(desk.store, desk.clock)
