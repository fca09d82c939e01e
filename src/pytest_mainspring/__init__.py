"""The pytest fixtures of Mainspring. A package of its own, which imports nothing of `mainspring` before
a fixture is used: pytest loads it in every project that has mainspring installed, used or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.testing import Harness


@pytest.fixture
def mainspring_app() -> Mainspring:
    """Your app: override this in conftest.py."""
    raise pytest.UsageError(
        "mainspring_app: override this fixture in conftest.py, to return the app that the tests are about"
    )


@pytest.fixture
def mainspring(mainspring_app: Mainspring) -> Iterator[Harness]:
    """Your app on a database in memory and a clock to move: see mainspring.testing.Harness."""
    from mainspring.testing import Harness

    with Harness(mainspring_app) as harness:
        yield harness
