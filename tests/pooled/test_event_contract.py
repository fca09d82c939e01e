"""The contract of the same name, once more, where each transaction has another session."""

from __future__ import annotations

from tests.store.test_event_contract import *  # noqa: F403 - its tests and the fixtures they use
