"""`/metrics` for viewers, `/healthz` and `/readyz` for everybody."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.errors import StoreUnavailable
from tests.support.door import House


def test_metrics_are_for_viewers_and_probes_say_up_or_down(
    sqlite_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = sqlite_house.ask("GET", "/metrics", role="viewer")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "mainspring_store_up 1.0" in page.text and 'mainspring_queue_jobs{queue="' in page.text
    assert sqlite_house.ask("GET", "/metrics", role=None).status_code == 401

    assert sqlite_house.ask("GET", "/healthz", role=None).text == "up\n"
    ready = sqlite_house.ask("GET", "/readyz", role=None)
    assert (ready.status_code, ready.text) == (200, "up\n")

    async def gone(*_: Any) -> Any:
        raise StoreUnavailable("postgresql://secret@host is away")

    # Nobody has asked for a while, and the store has gone meanwhile.
    survey = sqlite_house.web.state.store_poll
    survey._tried_at = None
    monkeypatch.setattr(survey._store, "verify", gone)
    ready = sqlite_house.ask("GET", "/readyz", role=None)
    assert (ready.status_code, ready.text) == (503, "down\n"), "and no word of why"
    survey._tried_at = None
    assert "mainspring_store_up 0.0" in sqlite_house.ask("GET", "/metrics", role="viewer").text
