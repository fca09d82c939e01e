"""What the tests of ops share."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.testing.clock import ManualClock
from tests.support.desk import Desk


@pytest.fixture
def desk(store: Any, clock: ManualClock, run: Any) -> Desk:
    """Runs the test once per backend, on an empty store."""
    return Desk(store, clock, run)
