"""An executor from outside: what it runs has the same guarantees as everything else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from mainspring.model.job import Claim, Failure, JobState
from mainspring.model.run import Crashed, Outcome, Succeeded, Verdict
from mainspring.tasks.payload import decode, encode_result
from mainspring.tasks.retry import Retry
from mainspring.telemetry.events import HandlerLeaked, RunEnded, RunStarted
from mainspring.worker import active_runs
from mainspring.worker.outcomes import outcome_of
from mainspring.worker.run import ActiveRun, AnyTask
from tests.engine.kit import MINUTE, Floor, until

PLAIN = Retry(attempts=3, base="10s", factor=2, jitter=False)
GONE = Failure(type="PodLost", message="the pod is gone")


class Pod:
    """A machine somewhere else that calls one function. Killed, it reports nothing."""

    def __init__(self, task: AnyTask, claim: Claim, report: Callable[[Outcome], None]) -> None:
        self._task, self._claim, self._report = task, claim, report
        self.killed = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            args, kwargs = decode(self._claim.payload)
            returned: Any = self._task.function(*args, **kwargs)
            outcome: Outcome = Succeeded(result=encode_result(returned))
        except SystemExit:
            outcome = Crashed(failure=GONE)
        except Exception as error:
            outcome = outcome_of(error, self._task.retry)
        if not self.killed:
            self._report(outcome)


class Pods:
    """The executor under test: jobs of tasks that are called `pod.…` run in pods."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.pods: list[Pod] = []
        self.closed = False
        self._deaf = deaf
        """Whether its pods cannot be killed."""

    def takes(self, task: AnyTask, claim: Claim) -> bool:
        return task.name.startswith("pod.")

    def start(self, runs: Sequence[ActiveRun]) -> None:
        for run in runs:
            barred = run.life.begin(run)
            if barred is not None:
                run.life.end(run, barred, 0.0)
                continue
            run.handle = Pod(run.task, run.claim, self._reporter(run))
            self.pods.append(run.handle)
            run.handler_begins()

    def stop(self, run: ActiveRun) -> None:
        if not self._deaf:
            run.handle.killed = True
            run.life.end(run, run.stopped(), 0.0)

    def is_sure_to_end(self, run: ActiveRun) -> bool:
        return not self._deaf

    async def close(self) -> None:
        self.closed = True

    def _reporter(self, run: ActiveRun) -> Callable[[Outcome], None]:
        loop = asyncio.get_running_loop()
        return lambda outcome: loop.call_soon_threadsafe(run.life.end, run, outcome, 0.0) and None


@pytest.fixture
def pods() -> Pods:
    return Pods()


@pytest.fixture
def floor(new_floor: Callable[..., Floor], pods: Pods) -> Floor:
    return new_floor(executors=[pods])


async def begun(floor: Floor, task: str, **fields: Any) -> int:
    """Claim a job of this task, and answer its id while it runs."""
    job_id = await floor.put(task, **fields)
    await floor.join()
    await floor.claimer.tick()
    assert floor.active_runs.running == 1
    return job_id


async def verdicts(floor: Floor, job_id: int) -> list[Verdict]:
    return [each.verdict for each in await floor.runs(job_id)]


def test_its_jobs_go_all_the_way_and_others_are_run_as_ever(floor: Floor, run: Any, pods: Pods) -> None:
    @floor.task(name="pod.add")
    def add(a: int, b: int) -> int:
        return a + b

    @floor.task(name="near")
    async def near() -> str:
        return "here"

    async def story() -> None:
        far = await floor.put("pod.add", payload=b'{"args":[1,2]}')
        here = await floor.put("near")
        await floor.work()

        job = await floor.job(far)
        assert (job.state, job.result) == (JobState.SUCCEEDED, b"3")
        assert (await floor.job(here)).result == b'"here"'
        assert len(pods.pods) == 1
        assert {event.job_id for event in floor.heard.of(RunStarted)} == {far, here}
        assert {event.job_id for event in floor.heard.of(RunEnded)} == {far, here}
        await floor.worker.end_handlers()
        assert pods.closed

    run(story())


def test_what_its_handlers_raise_is_retried_by_their_policy(floor: Floor, run: Any) -> None:
    @floor.task(name="pod.fails", retry=PLAIN)
    def fails() -> None:
        raise ValueError("far away")

    async def story() -> None:
        job_id = await floor.put("pod.fails", max_attempts=3)
        await floor.work()

        job = await floor.job(job_id)
        assert (job.state, job.failures, job.errors[0].type) == (JobState.DELAYED, 1, "ValueError")
        assert job.run_at == floor.clock.now() + timedelta(seconds=10)

    run(story())


def test_a_timeout_stops_it_and_counts_as_a_failure(floor: Floor, run: Any, pods: Pods) -> None:
    gate = threading.Event()

    @floor.task(name="pod.slow", timeout="20ms", retry=PLAIN)
    def slow() -> None:
        gate.wait(30)

    async def story() -> None:
        job_id = await begun(floor, "pod.slow", max_attempts=3)
        await floor.finish()

        job = await floor.job(job_id)
        assert (job.failures, job.errors[0].type) == (1, "TimeoutError")
        assert pods.pods[0].killed
        gate.set()

    run(story())


def test_a_deadline_stops_it_and_the_job_is_dead(floor: Floor, run: Any, pods: Pods) -> None:
    gate = threading.Event()

    @floor.task(name="pod.slow")
    def slow() -> None:
        gate.wait(30)

    async def story() -> None:
        deadline = floor.clock.now() + timedelta(milliseconds=30)
        job_id = await begun(floor, "pod.slow", expires_at=deadline)
        await floor.finish()

        [dead] = await floor.dead()
        assert (dead.id, dead.reason) == (job_id, "expired")
        assert pods.pods[0].killed
        gate.set()

    run(story())


def test_a_release_gives_its_job_back_and_a_lost_claim_settles_nothing(
    floor: Floor, run: Any, pods: Pods
) -> None:
    gate = threading.Event()

    @floor.task(name="pod.slow")
    def slow() -> None:
        gate.wait(30)

    async def story() -> None:
        job_id = await begun(floor, "pod.slow")
        floor.active_runs.release_all()
        await floor.finish()
        job = await floor.job(job_id)
        assert (job.state, job.failures) == (JobState.READY, 0)
        assert await verdicts(floor, job_id) == [Verdict.RELEASED]

        await floor.claimer.tick()
        floor.active_runs.drop_all()
        assert (floor.active_runs.running, floor.result_writer.pending) == (0, 0)
        assert await verdicts(floor, job_id) == [Verdict.RELEASED]
        assert all(pod.killed for pod in pods.pods)
        gate.set()

    run(story())


def test_a_pod_that_dies_is_a_crash_and_the_third_is_a_dead_letter(floor: Floor, run: Any) -> None:
    @floor.task(name="pod.poison", retry=Retry(attempts=9, base=0))
    def poison() -> None:
        raise SystemExit

    async def story() -> None:
        job_id = await floor.put("pod.poison", max_attempts=9)
        await floor.join()
        for _ in range(3):
            await floor.work()
            floor.clock.advance(MINUTE)
            await floor.heart.tick()

        [dead] = await floor.dead()
        assert (dead.id, dead.reason) == (job_id, "crashed")
        assert await verdicts(floor, job_id) == [Verdict.CRASHED] * 3

    run(story())


def test_what_does_not_stop_is_settled_without_it_once(
    new_floor: Callable[..., Floor], run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active_runs, "WRITE_OFF_AFTER", timedelta(milliseconds=50))
    floor, gate = new_floor(executors=[Pods(deaf=True)]), threading.Event()

    @floor.task(name="pod.deaf", timeout="20ms", retry=PLAIN)
    def deaf() -> None:
        gate.wait(30)

    async def story() -> None:
        job_id = await begun(floor, "pod.deaf", max_attempts=3)
        await floor.finish()

        assert (await floor.job(job_id)).errors[0].type == "TimeoutError"
        assert [event.job_id for event in floor.heard.of(HandlerLeaked)] == [job_id]
        assert floor.active_runs.size == 7
        gate.set()
        await until(lambda: floor.active_runs.size == 8)
        assert floor.result_writer.pending == 0, "what it returned in the end counts for nothing"
        assert await verdicts(floor, job_id) == [Verdict.FAILED]

    run(story())
