"""What each process says of a database that goes away: that it went, and that it is back."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.e2e.target import work
from tests.support.postgres import PostgresServer, synced
from tests.support.processes import Process, Site, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "hello.py"
OUTAGE = 5.0
GONE, BACK = "the store cannot be reached (", "the store answers again after "
LENGTH = re.compile(r"the store answers again after ([\d.]+) s")


def test_an_outage_of_five_seconds_is_one_line_of_each_process_and_its_end_is_another(
    server: PostgresServer, server_site: Site, tmp_path: Path
) -> None:
    site = server_site
    processes = [
        site.worker("worker"),
        site.scheduler("scheduler"),
        _dev(site),
        site.worker("two", "-c", "1"),
    ]
    web, port = _server(site, tmp_path)
    before = {each.name: len(each.log) for each in [*processes, web]}

    server.kill()
    _goes_by(OUTAGE, port)
    server.start()

    for each in processes:
        until(lambda process=each: process.says(BACK), f"{each.name} to say that it is over")
    until(lambda: _asked(port) == 200, "the server to be ready")
    _everybody_works(site)
    for each in [*processes, web]:
        said = _lines(each, since=before[each.name])
        assert [GONE in said[0], BACK in said[1]] == [True, True], said
        assert len(said) == 2, said
        assert OUTAGE - 1 <= float(LENGTH.findall(said[1])[0]) < OUTAGE + 10


def test_a_database_that_comes_and_goes_is_told_of_once_a_minute(
    server: PostgresServer, server_site: Site
) -> None:
    site = server_site
    processes = [site.worker("worker"), site.scheduler("scheduler")]
    _everybody_works(site)
    before = {each.name: len(each.log) for each in processes}

    for _ in range(5):
        server.kill()
        _goes_by(1.0)
        server.start()
        _everybody_works(site)

    for each in processes:
        said = _lines(each, since=before[each.name])
        assert [GONE in said[0], BACK in said[1]] == [True, True], said
        assert len(said) <= 4, said


def _goes_by(seconds: float, port: int | None = None) -> None:
    """The fault lasts for so long; a server is asked meanwhile, for it notices nothing by itself."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        if port is not None:
            _asked(port)
        time.sleep(0.1)


def _dev(site: Site) -> Process:
    return site.start("dev", "dev", target=EXAMPLE)


def _server(site: Site, folder: Path) -> tuple[Process, int]:
    """One that looks at the store for each request, at most every second."""
    settings = folder / "server.toml"
    settings.write_text('[metrics]\nevery = "1s"\n')
    web = site.server("server", "--config", str(settings))
    [port] = until(lambda: re.findall(r"listens at http://127\.0\.0\.1:(\d+)", web.log), "the server")
    until(lambda: _asked(int(port)) == 200, "the server to be ready")
    return web, int(port)


def _asked(port: int) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    finally:
        connection.close()


def _everybody_works(site: Site) -> None:
    """All is as before, so nothing more is going to be said of the outage."""
    ids: list[int] = []

    def is_put() -> bool:
        try:
            ids.extend(site.put([work.job(0.01)]))
        except Exception:
            return False
        return True

    until(is_put, "a job to be put in")
    until(lambda: any(site.verdicts(each) for each in ids), "the job to end")
    # A crash of the server may undo a claim or a settlement, and there would be a line about that.
    site.ask(synced(site.url))


def _lines(process: Process, *, since: int) -> Sequence[str]:
    """What it has said of trouble, or of the store."""
    said = process.log[since:].splitlines()
    return [each for each in said if re.search(r" (warning|error|critical) ", each) or "the store" in each]
