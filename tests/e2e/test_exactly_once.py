"""A handler's rows and its job's success are one, wherever its process is killed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from mainspring.model.job import JobState, NewJob
from mainspring.model.run import Verdict
from tests.support.processes import Site, until

pytestmark = pytest.mark.e2e

MORTAL = Path(__file__).with_name("mortal.py")
MOST = 100
"""More points than there are."""
FEWEST = 8
"""BEGIN, the handler's own statement, the settlement and COMMIT, before and after each."""


def execute(site: Site, query: str) -> list[int]:
    if site.url.startswith("sqlite"):
        path = site.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
            return [row[0] for row in connection.execute(query)]
    with psycopg.connect(site.url) as session:
        cursor = session.execute(query)
        return [row[0] for row in cursor] if cursor.description else []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("task", ["pay", "pay_plain"])
def test_killed_before_and_after_every_statement_the_effect_is_there_exactly_once(
    site: Site, task: str, record_property: Callable[[str, object], None]
) -> None:
    execute(site, "CREATE TABLE effects (job_id bigint)")
    queues = [f"q{point}" for point in range(1, MOST + 1)]
    ids = site.put([NewJob(task=task, payload=b"{}", queue=queue) for queue in queues])

    victims = subprocess.run(
        [sys.executable, str(MORTAL), site.url], capture_output=True, text=True, timeout=200, check=False
    )
    assert victims.returncode == 0, victims.stderr
    codes = json.loads(victims.stdout)
    before = execute(site, "SELECT job_id FROM effects")
    site.start(
        "worker", "second", "-q", ",".join(queues), "--lease", "3s", "--heartbeat", "1s", target=MORTAL
    )
    until(lambda: site.live() == 0, "every job to end")

    killed = ids[: len(codes) - 1]
    record_property("points", len(killed))
    assert codes == [-signal.SIGKILL] * len(killed) + [0]
    assert FEWEST <= len(killed) < MOST
    # Some died before they had committed, some after.
    assert 0 < len(set(before) & set(killed)) < len(killed)
    assert Counter(execute(site, "SELECT job_id FROM effects")) == Counter(ids)
    assert site.states(ids) == {JobState.SUCCEEDED}
    for job_id in ids:
        crashed = [Verdict.CRASHED] if job_id in killed and job_id not in before else []
        assert site.verdicts(job_id) == [*crashed, Verdict.SUCCEEDED]
