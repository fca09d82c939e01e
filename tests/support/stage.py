"""Random workflows played on real stores, by the engine's own settler, through calls that fail; and held
against the oracle after every round."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any

from mainspring.errors import UsageError
from mainspring.model.job import Claim, JobFilter, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Verdict
from mainspring.model.workflow import Definition, NewWorkflow, Stopping
from mainspring.testing.clock import ManualClock
from tests.support.cells import Flow, JobKey, Key
from tests.support.desk import settlement
from tests.support.drawing import PARAMS, RESULTS
from tests.support.oracle import Oracle, Refused
from tests.support.sides import EVERYTHING, Side, insist

ROUND = timedelta(seconds=10)
DEADLINE = timedelta(days=30)
LEASE = timedelta(days=400)
FINAL = (Verdict.SUCCEEDED, Verdict.DEAD, Verdict.CANCELLED, Verdict.DISCARDED)
VERDICTS = {"succeeded": Verdict.SUCCEEDED, "failed": Verdict.DEAD, "skipped": Verdict.DISCARDED}


class Stage:
    """The same story on every side, and what the oracle says to it."""

    def __init__(self, sides: list[Side], clock: ManualClock, dice: Random, inner: Definition | None) -> None:
        self.sides, self.clock, self.dice, self.inner = sides, clock, dice, inner
        self.oracle = Oracle()
        self.workers: dict[JobKey, int] = {}
        """Who has which job in hand."""
        self.late: list[list[Claim]] = []
        """Claims, one for each side, that nobody may settle any more."""
        self.worker = 0
        self.told: Counter[str] = Counter()
        self.begun: set[JobKey] = set()
        """Jobs in hand whose run is on record as begun."""
        self.luck = dice.choice([1, 3, 8])
        """How many handlers succeed for each five that do not, in times of trouble."""

    # Beginnings and endings.

    async def begin(self, drawn: Definition) -> None:
        worker = await self._join()
        key = self.oracle.begin(drawn, PARAMS)
        for side in self.sides:
            [job_id] = await side.store.queue.insert(
                [NewJob(task="root", payload=b"{}", expires=DEADLINE)], at=self.clock.stamp()
            )
            [claim] = await self._claim(side, worker, "root")
            assert claim.job_id == job_id
            side.flows[key] = job_id
            new = NewWorkflow(definition=drawn, params=PARAMS)
            side.result_writer.put(claim, settlement(claim, Verdict.STARTED, start=new))
            await side.settle()
        await self.resolve()
        await self.check()

    async def play(self, rounds: int) -> None:
        """Rounds of trouble, and then peace until everything has ended."""
        for _ in range(rounds):
            await self.round(trouble=True)
        while any(flow.state == "running" for flow in self.oracle.flows.values()):
            for key, flow in list(self.oracle.flows.items()):
                if flow.paused:
                    await self.control("resume", key)
            await self.round(trouble=False)

    async def round(self, *, trouble: bool) -> None:
        self.clock.advance(ROUND)
        await self.claim()
        for job in self._some(list(self.workers), trouble):
            await self.end(job, trouble=trouble)
        for side in self.sides:
            await side.settle()
        strictly = False
        if trouble and self.dice.random() < 0.7:
            strictly = await self.interfere()
        await self.resolve(limited=trouble and not strictly)
        await self.check()

    def _some(self, jobs: list[JobKey], trouble: bool) -> list[JobKey]:
        return [each for each in jobs if not trouble or self.dice.random() < 0.6]

    async def claim(self) -> None:
        """Everything that can be claimed is: exactly what the oracle says, with what it says."""
        worker = await self._join()
        inside = {job for job in self.oracle.work if self._is_workflow(job)}
        expected = self.oracle.work.keys() - self.workers.keys() - inside
        for side in self.sides:
            names = {job_id: job for job, job_id in side.jobs.items()}
            found = {names[each.job_id]: each for each in await self._claim(side, worker, "t", "sub")}
            assert found.keys() == expected
            for job, claim in found.items():
                assert json.loads(claim.payload) == self.oracle.work[job].payload
                assert claim.workflow_id == side.flows[job[0]]
                assert claim.failures == self.oracle.work[job].failures
                assert claim.fence > side.fences.get(claim.job_id, 0)
                side.fences[claim.job_id] = claim.fence
            side.claims |= found
        self.workers |= dict.fromkeys(sorted(expected, key=str), worker)
        self.begun -= expected
        for job in sorted(expected, key=str):
            if self.dice.random() < 0.7:
                self.begun.add(job)
                for side in self.sides:
                    assert await side.store.queue.begin(side.claims[job], at=self.clock.stamp())

    def _is_workflow(self, job: JobKey) -> bool:
        inner = self.oracle.inside(job)
        return inner is not None and inner.state == "running" and inner.has_job

    async def end(self, job: JobKey, *, trouble: bool) -> None:
        work = self.oracle.work[job]
        node = self.oracle.flows[job[0]].drawn.nodes[job[1]]
        if node.task == "sub" and self.inner is not None and self.dice.random() < 0.9:
            key = self.oracle.begin(self.inner, PARAMS, job)
            for side in self.sides:
                side.flows[key] = side.jobs[job]
            self._settle(job, Verdict.STARTED, start=NewWorkflow(definition=self.inner, params=PARAMS))
            return
        fate = self.dice.choice(
            ["succeed"] * self.luck + (["fail", "die", "die", "skip", "snooze"] * trouble)
        )
        self.told[fate] += 1
        if fate == "fail" and work.failures + 1 < work.attempts:
            work.failures += 1
            self._settle(job, Verdict.FAILED)
        elif fate == "snooze":
            self._settle(job, self.dice.choice([Verdict.SNOOZED, Verdict.RELEASED]), delay=ROUND / 2)
        elif fate == "succeed":
            result = self.dice.choice(RESULTS)
            self.oracle.end(job, "succeeded", result)
            written = None if result is None else json.dumps(result, separators=(",", ":")).encode()
            self._settle(job, Verdict.SUCCEEDED, result=written)
        else:
            verdict = "skipped" if fate == "skip" else "failed"
            self.oracle.end(job, verdict)
            self._settle(job, VERDICTS[verdict])

    def _settle(self, job: JobKey, verdict: Verdict, **fields: Any) -> None:
        del self.workers[job]
        spent = []
        for side in self.sides:
            claim = side.claims.pop(job)
            side.result_writer.put(claim, settlement(claim, verdict, **fields))
            spent.append(claim)
        self.late.append(spent)

    async def _join(self) -> int:
        self.worker += 1
        for side in self.sides:
            await side.store.processes.join(
                NewProcess(id=self.worker, role=Role.WORKER, name=f"w{self.worker}"),
                lease=LEASE,
                at=self.clock.stamp(),
            )
        return self.worker

    async def _claim(self, side: Side, worker: int, *tasks: str) -> list[Claim]:
        claims: list[Claim] = []
        how = {"queues": ["default"], "tasks": tasks, "limit": EVERYTHING, "at": self.clock.stamp()}
        while more := await side.store.queue.claim(worker, **how):  # type: ignore[arg-type]
            claims += more  # of those whose next crash is their last, one at a time
        return claims

    # Trouble.

    async def interfere(self) -> bool:
        """One thing that somebody does, or that happens to a worker. Whether endings must then be dealt with
        at once: their order, which is the store's own, would show otherwise."""
        acts = ["crash", "late", "cancel a step", "pause", "resume", "retry", "retry", "retry some"]
        grave = ["stop", "stop", "kill", "cancel", "expire", "fork"]
        action = self.dice.choice(grave if self.dice.random() < 0.15 else acts)
        self.told[action] += 1
        if action.startswith("retry"):
            # Whether a step is undone depends on what had failed when its turn came: an ending dealt with
            # beside the retried steps may come before them or after them, which is the store's own.
            await self.resolve(limited=False)
        if action == "crash":
            await self._crash()
        elif action == "late":
            await self._settle_late()
        elif action == "cancel a step":
            if jobs := sorted(self.oracle.work, key=str):
                job = self.dice.choice(jobs)
                self.oracle.end(job, "cancelled")
                for side in self.sides:
                    await side.store.jobs.cancel([side.jobs[job]], at=self.clock.stamp())
        elif flows := self._flows_for(action):
            await self.control(action, self.dice.choice(flows))
        return action in ("stop", "kill", "cancel", "expire", "cancel a step")

    def _flows_for(self, action: str) -> list[Key]:
        flows = self.oracle.flows.items()
        if action in ("cancel", "expire"):
            return [key for key, flow in flows if flow.has_job and flow.parent is None]
        if action == "fork":
            return [key for key, flow in flows if flow.parent is None and len(flows) < 5]
        if action.startswith("retry") and self.dice.random() < 0.9:
            return [key for key, flow in flows if flow.failed() or flow.cut_off()]
        return [key for key, _ in flows]

    async def control(self, action: str, key: Key) -> None:
        flow = self.oracle.flows[key]
        if action == "cancel":
            self.oracle.lose_own(key, "cancelled")
            for side in self.sides:
                await side.store.jobs.cancel([side.flows[key]], at=self.clock.stamp())
        elif action == "expire":
            await self._expire()
        elif action == "fork":
            await self._fork(key, self.dice.choice(flow.drawn.nodes).name)
        elif action.startswith("retry"):
            names = [
                flow.drawn.nodes[place].name for place in sorted(flow.failed()) if self.dice.random() < 0.5
            ]
            await self._retry(key, names if action == "retry some" else None)
        elif action in ("stop", "kill"):
            stopping = Stopping.KILLED if action == "kill" else Stopping.CANCELLED
            self.oracle.stop(key, stopping.value)
            await self._action("stop", key, stopping)
        else:
            self.oracle.pause(key) if action == "pause" else self.oracle.resume(key)
            await self._action(action, key)

    async def _action(self, name: str, key: Key, *args: Any, **given: Any) -> None:
        for side in self.sides:
            how = {"author": "ann", "note": None, "at": self.clock.stamp(), **given}
            await insist(
                lambda side=side, how=how: getattr(side.flaky.workflows, name)(side.flows[key], *args, **how)
            )  # type: ignore[misc]

    async def _retry(self, key: Key, names: list[str] | None) -> None:
        try:
            self.oracle.retry(key, names)
        except Refused:
            for side in self.sides:
                how = {"author": "ann", "note": None, "at": self.clock.stamp()}
                try:
                    await side.store.workflows.retry(side.flows[key], steps=names, **how)  # type: ignore[arg-type]
                except UsageError:
                    continue
                raise AssertionError("a retry that makes no sense was not refused") from None
        else:
            await self._action("retry", key, steps=names)

    async def _fork(self, key: Key, name: str) -> None:
        new = self.oracle.fork(key, name)
        for side in self.sides:
            how = {"author": "ann", "note": None, "at": self.clock.stamp()}
            side.flows[new] = await side.store.workflows.fork(side.flows[key], name, **how)  # type: ignore[arg-type]

    async def _expire(self) -> None:
        """Forks and retried workflows have no deadline; all others have the same."""
        self.clock.advance(DEADLINE)
        gone: list[set[Key]] = []
        for side in self.sides:
            keys = {job_id: key for key, job_id in side.flows.items()}
            late = await side.store.jobs.expire(limit=EVERYTHING, at=self.clock.stamp())
            gone.append({keys[job_id] for job_id in late})
        assert all(each == gone[0] for each in gone)
        for key in sorted(gone[0]):
            self.oracle.lose_own(key, "failed")

    async def _crash(self) -> None:
        """A worker is lost with everything in its hands."""
        if not self.workers:
            return
        worker = self.dice.choice(sorted(set(self.workers.values())))
        lost = [job for job, holder in self.workers.items() if holder == worker]
        for side in self.sides:
            await side.store.processes.leave(worker, clean=False, at=self.clock.stamp())
            while (await side.store.processes.reap(limit=EVERYTHING, at=self.clock.stamp())).jobs:
                pass
        for job in lost:
            self._drop(job)
            if job in self.begun:
                self.oracle.crash(job)

    async def _settle_late(self) -> None:
        """Whoever lost a claim, or has settled it, and says how it ended: nobody listens."""
        for claims in self.dice.sample(self.late, min(5, len(self.late))):
            for side, claim in zip(self.sides, claims, strict=True):
                told = settlement(claim, Verdict.SUCCEEDED, result=b'"late"')
                assert await side.store.queue.settle([told], at=self.clock.stamp()) == [claim.job_id]

    def _drop(self, job: JobKey) -> None:
        del self.workers[job]
        self.late.append([side.claims.pop(job) for side in self.sides])

    # Passes, and what is compared.

    async def resolve(self, *, limited: bool = False) -> None:
        limit = self.dice.choice([1, 2, 5, EVERYTHING]) if limited else EVERYTHING
        while self.oracle.resolve(limit):
            pass
        for side in self.sides:
            while await side.resolve(limit):
                if self.dice.random() < 0.3:
                    for key, flow in self.oracle.flows.items():
                        await side.recount(key, flow.drawn)
        for job in [job for job in self.workers if job not in self.oracle.work]:
            self._drop(job)  # it was cancelled with its workflow

    async def check(self) -> None:
        oracle = self.oracle
        for side in self.sides:
            assert side.refused == []
            if not side.flaky.told:  # else the answers that said so are lost
                assert side.released == oracle.released
            for key, flow in oracle.flows.items():
                await self._check_flow(side, key, flow)
            live = {
                job.id
                for job in await side.store.jobs.find(JobFilter(limit=EVERYTHING), at=self.clock.stamp())
            }
            own = {
                side.flows[key] for key, flow in oracle.flows.items() if flow.has_job and flow.parent is None
            }
            assert live == {side.jobs[job] for job in oracle.work} | own

    async def _check_flow(self, side: Side, key: Key, flow: Flow) -> None:
        workflow = await side.store.workflows.get(side.flows[key])
        assert workflow is not None
        assert (workflow.state, workflow.stopping) == (flow.state, flow.stopping)
        assert (workflow.paused_at is not None) == flow.paused
        expected = []
        for place, cell in enumerate(flow.cells):
            expected.append((place, None, cell.state, cell.cause))
            expected += [(place, item, each.state, each.cause) for item, each in enumerate(cell.items)]
        steps = await side.recount(key, flow.drawn, quiet=True)
        assert [(each.place, each.item, each.state, each.cause) for each in steps] == expected

    async def record(self, side: Side) -> dict[str, Any]:
        """Everything that can be read of it, without ids."""
        told: dict[str, Any] = {}
        for key in self.oracle.flows:
            for step in await side.steps(key):
                runs = await side.store.runs.of(step.id)
                told[f"{key}.{step.place}.{step.item}"] = (
                    step.state,
                    step.cause,
                    step.result,
                    step.error,
                    step.ended_at,
                    [(run.verdict, run.fence, run.finished_at, run.result) for run in runs],
                )
            told[f"{key}"] = [
                (run.verdict, run.result, run.fence) for run in await side.store.runs.of(side.flows[key])
            ]
            told[f"{key} acts"] = {each.action for each in await side.store.workflows.orders(side.flows[key])}
        return told
