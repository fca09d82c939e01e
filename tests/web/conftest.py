"""A house with something of everything in it, once per store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.door import House, open_house


@pytest.fixture
def house(database_url: str) -> Iterator[House]:
    with open_house(database_url) as opened:
        yield opened


@pytest.fixture
def sqlite_house(tmp_path: object) -> Iterator[House]:
    """For what the store has no part in."""
    with open_house(f"sqlite:///{tmp_path}/mainspring.db") as opened:
        yield opened


@pytest.fixture
def token_house(tmp_path: object) -> Iterator[House]:
    """One that knows people by their tokens."""
    with open_house(f"sqlite:///{tmp_path}/mainspring.db", tokens=True) as opened:
        yield opened
