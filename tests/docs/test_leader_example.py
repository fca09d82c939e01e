"""The leader's example does what its page says."""

from __future__ import annotations

import asyncio
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "leader.py"


@pytest.fixture
def leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", f"sqlite:///{tmp_path / 'mainspring.db'}")
    return runpy.run_path(str(EXAMPLE))


def test_an_older_token_is_refused_by_the_table(leader: dict[str, Any]) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(leader["TABLE"])
        pages = [leader["write"](database, token) for token in (1, 1, 2)]

        with pytest.raises(leader["StaleToken"]):
            leader["write"](database, 1)

        assert pages == [1, 2, 3]
        assert database.execute("SELECT token, page FROM progress").fetchall() == [(2, 3)]


def test_each_leader_has_a_higher_token(leader: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def lead_twice(database: sqlite3.Connection) -> None:
        async with leader["app"]:
            await leader["lead"](database, pages=0)
            await leader["lead"](database, pages=1)

    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(leader["TABLE"])
        asyncio.run(lead_twice(database))

    assert capsys.readouterr().out.splitlines() == [
        "leading, with token 1",
        "leading, with token 2",
        "token 2: page 1",
    ]
