"""What tests of targets share: a context as a worker would give it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mainspring.tasks.context import Context


@pytest.fixture
def context() -> Callable[..., Context]:
    def make(job_id: int = 7, task: str = "notify", attempt: int = 1, **more: Any) -> Context:
        return Context(
            **more,
            job_id=job_id,
            task=task,
            queue="default",
            attempt=attempt,
            max_attempts=3,
            fence=1,
            log=logging.getLogger("test"),
            stop=threading.Event(),
        )

    return make
