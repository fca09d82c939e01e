"""What becomes of workflows, told a second time: slowly, without counters, from the words of the docs.

Nothing here is taken from `rules/`. After every pass all nodes are looked at, again and again, until
nothing changes any more; tests compare a real store with what comes of it.
"""

from __future__ import annotations

import copy
from typing import Any

from mainspring.model.workflow import Definition, Node, NodeKind
from tests.support.cells import (
    BAD,
    CANCELLED,
    CRASHES_ALLOWED,
    FAILED,
    LIVE,
    OPEN,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Bad,
    Cell,
    Event,
    Flow,
    JobKey,
    Key,
    Work,
    copy_of,
    reads,
)


class Refused(Exception):
    """An act that has no sense as things stand."""


class Oracle:
    """Every workflow of a story, the jobs that are in the queue, and the endings nobody has dealt with."""

    def __init__(self) -> None:
        self.flows: dict[Key, Flow] = {}
        self.work: dict[JobKey, Work] = {}
        self.letters: dict[JobKey, Work] = {}
        """Jobs that died or were cancelled and can go on from there."""
        self.noted: list[Event] = []
        self.inner: dict[JobKey, Key] = {}
        """The workflows that jobs of steps are."""
        self.released = 0

    # What happens to jobs.

    def begin(self, drawn: Definition, params: dict[str, Any], parent: JobKey | None = None) -> Key:
        cells = [Cell() for _ in drawn.nodes]
        flow = self._add(drawn, params, cells, parent)
        if parent is not None:
            self.inner[parent] = flow.key
        return flow.key

    def _add(
        self, drawn: Definition, params: dict[str, Any], cells: list[Cell], parent: JobKey | None
    ) -> Flow:
        flow = Flow(key=len(self.flows), drawn=drawn, params=params, cells=cells, parent=parent)
        self.flows[flow.key] = flow
        self._nudge(flow.key)
        return flow

    def _nudge(self, key: Key) -> None:
        self.noted.append((key, "look", "", None))

    def end(self, job: JobKey, verdict: str, result: Any = None) -> None:
        """A job leaves the queue."""
        work = self.work.pop(job)
        if verdict in (FAILED, CANCELLED):
            self.letters[job] = work
        self.noted.append((job[0], job, verdict, result))
        inner = self.inside(job)
        if inner is not None and inner.state == "running" and inner.has_job:
            self.lose_own(inner.key, verdict)

    def crash(self, job: JobKey) -> None:
        self.work[job].crashes += 1
        if self.work[job].crashes >= CRASHES_ALLOWED:
            self.end(job, FAILED)

    def lose_own(self, key: Key, verdict: str) -> None:
        """The job of a workflow is cancelled, or its deadline passes."""
        self.flows[key].has_job = False
        self.noted.append((key, "own", verdict, None))

    def inside(self, job: JobKey) -> Flow | None:
        """The workflow that this job is."""
        return self.flows[self.inner[job]] if job in self.inner else None

    def cell(self, job: JobKey) -> Cell:
        key, place, item = job
        cell = self.flows[key].cells[place]
        return cell if item is None else cell.items[item]

    # Passes.

    def resolve(self, limit: int) -> int:
        """A pass is one transaction: what it cancels is gone before what it finishes ends."""
        taken, self.noted = self.noted[:limit], self.noted[limit:]
        flows = [self.flows[key] for key in dict.fromkeys(event[0] for event in taken)]
        flows = [flow for flow in flows if flow.state == "running"]
        gone = [job for flow in flows for job in self._pass(flow, [e for e in taken if e[0] == flow.key])]
        for job in gone:
            self.end(job, CANCELLED)
        for flow in flows:
            # One whose own job was just taken away ends as that says, with the next pass.
            if all(cell.state not in OPEN for cell in flow.cells) and (flow.has_job or flow.stopping):
                self._finish(flow)
        return len(taken)

    def _pass(self, flow: Flow, events: list[Event]) -> list[JobKey]:
        """Answer which jobs must not run any more."""
        looks = False
        for _, what, verdict, _ in events:
            if what == "own":
                flow.stopping = flow.stopping or self._why_stopped(flow, verdict)
                flow.paused = False
            looks = looks or isinstance(what, str)
        for _, what, verdict, result in events:
            if not isinstance(what, str) and self.cell(what).state == LIVE:
                self._ended(flow, what, verdict, result)
        gone = [
            job
            for job in self.work
            if looks and flow.stopping and job[0] == flow.key
            if self._taken_away(flow.drawn.nodes[job[1]], flow.stopping)
        ]
        while not flow.paused and any(self._decide(flow, place) for place in range(len(flow.cells))):
            pass
        return gone

    def _why_stopped(self, flow: Flow, verdict: str) -> str:
        if verdict == FAILED:
            return "expired"
        outer = self.flows[flow.parent[0]] if flow.parent else None
        return "killed" if outer and outer.stopping == "killed" else "cancelled"

    def _ended(self, flow: Flow, job: JobKey, verdict: str, result: Any) -> None:
        cell, whole = self.cell(job), flow.cells[job[1]]
        cell.state, cell.cause = verdict, "itself" if verdict == SKIPPED else None
        cell.result = result if verdict == SUCCEEDED else None
        if cell is not whole and all(item.state not in OPEN for item in whole.items):
            whole.state = FAILED if any(item.state in BAD for item in whole.items) else SUCCEEDED

    def _taken_away(self, node: Node, stopping: str) -> bool:
        if stopping == "killed":
            return True
        if node.kind is NodeKind.UNDO or node.when == "always":
            return False
        return node.when == "success" or stopping == "cancelled"

    def _decide(self, flow: Flow, place: int) -> bool:
        """Whether something came of it."""
        node, cell, parents = flow.drawn.nodes[place], flow.cells[place], flow.parents(place)
        if cell.state != WAITING or any(each.state in OPEN for each in parents.values()):
            return False
        cell.cause = self._barred(flow, node, parents)
        if cell.cause is not None:
            cell.state = SKIPPED
            return True
        try:
            self._release(flow, place)
        except Bad:
            cell.state = FAILED
        return True

    def _barred(self, flow: Flow, node: Node, parents: dict[int, Cell]) -> str | None:
        bad = any(
            each.state in BAD or (each.state == SKIPPED and each.cause in ("failure", "stopped"))
            for each in parents.values()
        )
        if flow.stopping == "killed":
            return "stopped"
        if node.kind is NodeKind.BARRIER:
            return None
        if node.kind is NodeKind.UNDO:
            went_wrong = bool(flow.failed()) or flow.stopping is not None
            assert node.of is not None
            return None if went_wrong and parents[node.of].state == SUCCEEDED else "condition"
        if node.when == "always":
            return None
        if node.when == "failure":
            return "stopped" if flow.stopping == "cancelled" else None if bad else "condition"
        if flow.stopping:
            return "stopped"
        if bad:
            return "failure"
        return "input" if any(parents[each].state == SKIPPED for each in reads(node)) else None

    def _release(self, flow: Flow, place: int) -> None:
        node, cell = flow.drawn.nodes[place], flow.cells[place]
        if node.only_if is not None:
            # All conditions of these stories say this.
            assert node.only_if.text == "it == 1"
            it = flow.value(node.only_if.names["it"])
            if it != 1:
                cell.state, cell.cause = SKIPPED, "condition"
                return
        if node.kind is NodeKind.BARRIER:
            cell.state = SUCCEEDED
            return
        if node.over is None:
            self._put((flow.key, place, None), [flow.value(each) for each in node.args], node)
            cell.state = LIVE
            return
        over = flow.value(node.over)
        if not isinstance(over, list):
            raise Bad
        rest = [flow.value(each) for each in node.args] if over else []
        cell.items = [Cell(state=LIVE) for _ in over]
        cell.state = LIVE if over else SUCCEEDED
        for item, value in enumerate(over):
            self._put((flow.key, place, item), [value, *rest], node)

    def _put(self, job: JobKey, args: list[Any], node: Node) -> None:
        self.work[job] = Work(payload={"args": args} if args else {}, attempts=node.max_attempts)
        self.released += 1

    def _finish(self, flow: Flow) -> None:
        if flow.stopping in ("cancelled", "killed"):
            flow.state = CANCELLED
        else:
            flow.state = FAILED if flow.failed() or flow.stopping else SUCCEEDED
        if flow.state == SUCCEEDED and flow.drawn.returns is not None:
            try:
                flow.result = flow.value(flow.drawn.returns)
            except Bad:
                flow.state, flow.given_up = FAILED, True
        if flow.has_job:
            flow.has_job = False
            if flow.parent is not None:
                self.end(flow.parent, flow.state, flow.result)

    # What operators do.

    def pause(self, key: Key) -> bool:
        flow = self.flows[key]
        if flow.state != "running" or flow.stopping or flow.paused:
            return False
        flow.paused = True
        self._nudge(key)
        return True

    def resume(self, key: Key) -> bool:
        flow = self.flows[key]
        if not flow.paused:
            return False
        flow.paused = False
        self._nudge(key)
        return True

    def stop(self, key: Key, stopping: str) -> bool:
        flow = self.flows[key]
        if flow.state != "running" or flow.stopping == "killed":
            return False
        flow.stopping, flow.paused = stopping, False
        if flow.has_job:
            if flow.parent is not None:
                self.end(flow.parent, CANCELLED)
            else:
                self.lose_own(key, CANCELLED)
        self._nudge(key)
        return True

    def retry(self, key: Key, names: list[str] | None) -> list[str]:
        """Raises Refused, and then nothing has changed."""
        before = copy.deepcopy(self.__dict__)
        try:
            if self.flows[key].parent is not None:
                raise Refused
            return self._retry(self.flows[key], names)
        except Refused:
            self.__dict__.update(before)
            raise

    def _retry(self, flow: Flow, names: list[str] | None) -> list[str]:
        nodes = flow.drawn.nodes
        if flow.state == "running" and (flow.stopping or not flow.has_job):
            raise Refused
        failed = flow.failed()
        chosen = {place for place in failed if names is None or nodes[place].name in names}
        if names is not None and not chosen:
            return []
        again = flow.after(chosen | (flow.cut_off() if chosen >= failed else set()))
        if not again:
            return []
        if flow.undone():
            raise Refused
        for place in sorted(again):
            self._retry_one(flow, place, first=place in chosen and not again & set(nodes[place].parents))
        flow.state, flow.stopping, flow.given_up = "running", None, False
        flow.has_job = True
        self._nudge(flow.key)
        return sorted(nodes[place].name for place in chosen) or ["what was cut off"]

    def _retry_one(self, flow: Flow, place: int, *, first: bool) -> None:
        cell = flow.cells[place]
        lost = [item for item, each in enumerate(cell.items) if each.state in BAD]
        if first and lost:
            for item in lost:
                self._revive(flow, place, item)
            cell.state = LIVE
        elif first and cell.state == FAILED and (flow.key, place, None) in self.letters:
            self._revive(flow, place, None)
        elif cell.state != LIVE:
            for item in [None, *range(len(cell.items))]:
                self._forget((flow.key, place, item))
            flow.cells[place] = Cell()

    def _revive(self, flow: Flow, place: int, item: int | None) -> None:
        job = (flow.key, place, item)
        old = self.letters.pop(job)
        inner = self.inside(job)
        if inner is not None and not self._retry(inner, None):
            raise Refused
        self.work[job] = Work(payload=old.payload, attempts=old.attempts)
        cell = self.cell(job)
        cell.state, cell.cause, cell.result = LIVE, None, None

    def _forget(self, job: JobKey) -> None:
        """A step that begins anew: what was a workflow in it is another one next time."""
        self.letters.pop(job, None)
        self.inner.pop(job, None)

    def fork(self, key: Key, name: str) -> Key:
        flow = self.flows[key]
        nodes = flow.drawn.nodes
        undone = {of for place in flow.undone() if (of := nodes[place].of) is not None}
        opened = {place for place, cell in enumerate(flow.cells) if cell.state in OPEN}
        place = next(place for place, node in enumerate(nodes) if node.name == name)
        again = flow.after({place} | opened | flow.failed() | flow.cut_off() | undone)
        cells = [Cell() if each in again else copy_of(cell) for each, cell in enumerate(flow.cells)]
        return self._add(flow.drawn, flow.params, cells, None).key
