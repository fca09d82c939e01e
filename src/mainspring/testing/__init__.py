"""For the tests of programs that use Mainspring: their own app on a database in memory and a clock to
move, and the engine's real loops, ticked by hand. The pytest fixtures are in `pytest_mainspring`."""

from __future__ import annotations

from mainspring.testing.clock import ManualClock
from mainspring.testing.eager import eager
from mainspring.testing.enqueued import Enqueued
from mainspring.testing.floor import Ran, RunFailed
from mainspring.testing.harness import Harness, StillBusy

__all__ = ["Enqueued", "Harness", "ManualClock", "Ran", "RunFailed", "StillBusy", "eager"]
