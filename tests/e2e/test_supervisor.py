"""`worker -p N`: real workers under a real supervisor, killed and stopped."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from tests.e2e.target import holder, innocent, labour, lethal, lonely, sender, spinning, work
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

QUICK = ("--lease", "3s", "--heartbeat", "1s")

CRASHING = """
import os
import sys

from mainspring import Mainspring

app = Mainspring()
if "--supervised" in sys.argv:
    os._exit(9)
"""

BROKEN = """
import sys

from mainspring import Mainspring

app = Mainspring()
if "--supervised" in sys.argv:
    raise RuntimeError("only in a worker")
"""

THREADED = """
import threading

from tests.e2e.target import app

for _ in range(8):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


def workers(process: Process) -> list[int]:
    """The processes that it has started so far, by its own account."""
    return [int(pid) for pid in re.findall(r"worker \d+: process (\d+)\n", process.log)]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def supervised(site: Site, count: int, *options: str, **more: Path) -> Process:
    supervisor = site.start("worker", "crew", "-p", str(count), *options, joined=False, **more)
    until(lambda: supervisor.joined(times=count), f"{count} workers to join")
    return supervisor


def test_a_killed_worker_is_replaced_and_its_jobs_are_done(site: Site) -> None:
    supervisor = supervised(site, 2, "-c", "4", *QUICK)
    first = workers(supervisor)
    ids = site.put([work.job(0.3)] * 60)
    until(lambda: len(site.effects.of("end")) >= 8, "8 jobs to end")

    os.kill(first[0], signal.SIGKILL)
    until(lambda: site.live() == 0, "all jobs to end")

    until(lambda: supervisor.joined(times=3), "a third worker to join")
    assert site.states(ids) == {JobState.SUCCEEDED}
    assert supervisor.says("(signal 9), another in")
    assert lives(first[1]), "the other one was left alone"
    assert len(workers(supervisor)) == 3
    assert supervisor.lives


def test_a_sigterm_drains_them_all(site: Site) -> None:
    supervisor = supervised(site, 2, "-c", "2")
    ids = site.put([work.job(1.5), labour.job(1.5), work.job(1.5), labour.job(1.5)])
    until(lambda: len(site.effects.of("start")) == 4, "4 starts")
    waiting = site.put([work.job(0.1)] * 4)

    supervisor.signal(signal.SIGTERM)
    code = supervisor.exit_code()

    assert code == 0
    assert [site.verdicts(job_id) for job_id in ids] == [[Verdict.SUCCEEDED]] * 4
    assert site.states(waiting) == {JobState.READY}
    assert not any(map(lives, workers(supervisor)))


def test_a_second_sigterm_cuts_all_drains_short(site: Site) -> None:
    supervisor = supervised(site, 2, "-c", "1")
    ids = site.put([work.job(60), work.job(60)])
    until(lambda: len(site.effects.of("start")) == 2, "2 starts")

    supervisor.signal(signal.SIGTERM)
    until(lambda: supervisor.says("stopping: 1 running job", times=2), "both drains to begin")
    supervisor.signal(signal.SIGTERM)
    code = supervisor.exit_code()

    assert code == 128 + signal.SIGTERM
    assert site.states(ids) == {JobState.READY}
    assert not any(map(lives, workers(supervisor)))


def test_workers_drain_when_their_supervisor_is_killed(site: Site, tmp_path: Path) -> None:
    # The kernel tells a process of its parent's death once for each thread that the parent had.
    target = tmp_path / "threaded.py"
    target.write_text(THREADED)
    supervisor = supervised(site, 2, "-c", "1", target=target)
    ids = site.put([work.job(1.5), work.job(1.5)])
    until(lambda: len(site.effects.of("start")) == 2, "2 starts")

    supervisor.kill()
    until(lambda: not any(map(lives, workers(supervisor))), "its workers to end")

    assert [site.verdicts(job_id) for job_id in ids] == [[Verdict.SUCCEEDED]] * 2


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_worker_that_keeps_dying_is_started_ever_more_slowly(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "crashing.py"
    target.write_text(CRASHING)
    supervisor = site.start("worker", "crew", "-p", "1", target=target, joined=False)

    until(lambda: supervisor.says("(exit code 9), another in", times=4), "4 deaths")
    pauses = [
        float(number) / (1000 if unit == "ms" else 1)
        for number, unit in re.findall(r"another in ([\d.]+) (ms|s)", supervisor.log)
    ]
    supervisor.signal(signal.SIGTERM)

    assert supervisor.exit_code() == 0
    assert 0.5 <= pauses[0] <= 1
    assert 4 <= pauses[3] <= 8


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_workers_that_can_never_start_end_the_supervisor(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "broken.py"
    target.write_text(BROKEN)

    supervisor = site.start("worker", "crew", "-p", "2", target=target, joined=False)

    assert supervisor.exit_code() == 2
    assert "only in a worker" in supervisor.log


def test_a_burst_of_several_workers_ends_when_nothing_is_left(site: Site) -> None:
    ids = site.put([work.job(0.05)] * 30)

    supervisor = site.worker("crew", "-p", "2", "--burst", joined=False)

    assert supervisor.exit_code() == 0
    assert site.states(ids) == {JobState.SUCCEEDED}


def test_a_job_that_kills_its_worker_does_it_once_and_then_dies_alone(site: Site) -> None:
    supervisor = supervised(site, 1, "-c", "4", *QUICK)
    [poison] = site.put([lethal.job()])
    until(lambda: site.live() == 0, "the poison to be a dead letter")
    [harmless] = site.put([innocent.job(0.05)])
    until(lambda: site.live() == 0, "the next job to end")

    assert len(workers(supervisor)) == 2, "only the first run took a worker along"
    verdicts = site.verdicts(poison)
    assert verdicts[0] is Verdict.CRASHED
    assert site.job(poison).state is JobState.DEAD
    assert site.job(poison).errors[-1].message == "its process ended with exit code 7"
    assert site.verdicts(harmless) == [Verdict.SUCCEEDED]
    pids = [each.pid for each in site.effects.of("start", jobs=[poison])]
    assert len(set(pids)) == len(pids)


def test_the_innocent_in_a_dead_worker_succeed_in_children(site: Site) -> None:
    supervised(site, 1, "-c", "4", *QUICK)
    [bystander] = site.put([innocent.job(1.0)])
    until(lambda: site.effects.of("start", jobs=[bystander]), "the bystander to start")
    site.put([lethal.job()])
    until(lambda: site.live() == 0, "all jobs to end")

    job = site.job(bystander)
    assert (job.state, job.failures, job.crashes) == (JobState.SUCCEEDED, 0, 0)
    assert site.verdicts(bystander) == [Verdict.CRASHED, Verdict.SUCCEEDED]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_handler_that_blocks_its_event_loop_for_ever_ends_as_a_timeout(site: Site) -> None:
    supervisor = supervised(site, 1, *QUICK)
    [job_id] = site.put([spinning.job()])
    until(lambda: site.live() == 0, "the job to be a dead letter", within=90)

    assert supervisor.says("the handler blocks the event loop beyond its timeout")
    assert supervisor.says("(exit code 70), another in")
    assert site.job(job_id).errors[-1].type == "TimeoutError"
    assert site.verdicts(job_id)[0] is Verdict.CRASHED
    assert supervisor.lives


def test_children_die_with_a_killed_worker_and_all_that_is_below_them(site: Site) -> None:
    worker = site.worker("worker", *QUICK)
    [job_id] = site.put([lonely.job(600)])
    [effect] = until(lambda: site.effects.of("start", jobs=[job_id]), "the job to start")
    below = _children_of(effect.pid)
    assert below, "the handler has a child of its own"

    worker.kill()

    until(lambda: not any(map(lives, [effect.pid, *below])), "every process below the worker to end")


def test_children_die_when_their_job_is_cancelled(site: Site) -> None:
    worker = site.worker("worker", *QUICK)
    [job_id] = site.put([lonely.job(600)])
    [effect] = until(lambda: site.effects.of("start", jobs=[job_id]), "the job to start")
    below = _children_of(effect.pid)

    site.ask(site.store.jobs.cancel([job_id], at=None))

    until(lambda: not any(map(lives, [effect.pid, *below])), "every process of the job to end")
    assert worker.lives
    [after] = site.put([lonely.job(0)])
    until(lambda: site.job(after).state is JobState.SUCCEEDED, "the next job to be done")


def test_a_child_enqueues_into_the_database_of_its_worker(site: Site) -> None:
    site.worker("worker")
    site.put([sender.job()])

    until(lambda: len(site.effects.of("end")) == 1, "the job that the child enqueued")
    until(lambda: site.live() == 0, "all jobs to end")


def test_twenty_handlers_that_hold_leases_and_the_store_do_not_starve_the_heart(site: Site) -> None:
    worker = site.worker("worker", "-c", "20", *QUICK)
    ids = site.put([holder.job(number, 7.0) for number in range(20)])
    until(lambda: len(site.effects.of("start")) == 20, "20 starts")
    until(lambda: site.live() == 0, "all jobs to end")

    assert site.states(ids) == {JobState.SUCCEEDED}
    assert {site.job(job_id).crashes for job_id in ids} == {0}
    assert len(site.effects.of("start")) == 20
    assert not worker.says("lease of")
    assert not worker.says("lease lost")


def _children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            found += [int(entry.name)] if parent == pid else []
    return found
