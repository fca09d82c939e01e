"""What the engine's tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mainspring.testing.clock import ManualClock
from tests.engine.kit import Floor


@pytest.fixture
def new_floor(store: Any, clock: ManualClock) -> Iterator[Callable[..., Floor]]:
    """A factory of workers on one store, once per backend."""
    floors: list[Floor] = []

    def make(**config: Any) -> Floor:
        floors.append(Floor(store, clock, seed=len(floors) + 1, **config))
        return floors[-1]

    yield make
    for floor in floors:
        floor.close()


@pytest.fixture
def floor(new_floor: Callable[..., Floor]) -> Floor:
    return new_floor()
