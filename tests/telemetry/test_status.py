"""`mainspring status`: 0 when all is well, 1 when asked and it is not, 3 when nobody answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mainspring.app import Mainspring
from mainspring.cli.main import cli
from mainspring.model.job import NewJob


def status(url: str, *options: str) -> Any:
    return CliRunner().invoke(cli, ["status", "--database-url", url, *options])


def test_the_exit_code_says_how_it_stands(tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path / 'mainspring.db'}"
    assert status(url, "--exit-code").exit_code == 3, "there is no database"

    async def put() -> None:
        app = Mainspring(url)
        store = await app._store()
        await store.queue.insert([NewJob(task="mail", payload=b"{}", queue="lonely")], at=None)
        await app.aclose()

    run(put())
    wrong = status(url, "--exit-code")
    assert wrong.exit_code == 1 and "queue lonely has no live worker" in wrong.output
    assert status(url).exit_code == 0, "nobody asked for the code"
    told = json.loads(status(url, "--json").stdout)
    assert told["ok"] is False and told["troubles"][0]["rule"] == "no_worker"
    assert told["queues"][0]["ready"] == 1

    async def take() -> None:
        app = Mainspring(url)
        store = await app._store()
        await store.jobs.cancel([1], at=None)
        await app.aclose()

    run(take())
    assert status(url, "--exit-code").exit_code == 0
