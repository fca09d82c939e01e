"""What the endings of steps do to their workflow: a pass over one workflow, in memory.

The store reads what `need` asks for, hands it over with `supply`, and writes what came of it. All of it
happens in one transaction that has the workflow's row locked, so no other process counts at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast

import msgspec

from mainspring.errors import shown
from mainspring.model.job import Failure, NewJob
from mainspring.model.limit import LimitKey
from mainspring.model.run import Verdict
from mainspring.model.value import Value
from mainspring.model.workflow import (
    LARGEST_INPUT,
    WIDEST,
    Cause,
    Constant,
    Fields,
    Input,
    Items,
    Limiting,
    Node,
    NodeKind,
    Param,
    StepRecord,
    StepResult,
    StepState,
    Stopping,
    WorkflowRecord,
    WorkflowState,
)
from mainspring.rules.admission import key_of_value
from mainspring.rules.condition import evaluate
from mainspring.rules.graph import FAILED_STATES, Graph, ends_with_the_workflow

_params = msgspec.json.Decoder(dict[str, object])
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
_NULL = b"null"


class StepEnding(Value, frozen=True, kw_only=True):
    """A job of the workflow that is not in the queue any more, and how it left."""

    job_id: int
    verdict: Verdict | None = None
    """None when nothing is on record: it was deleted."""
    result: bytes | None = None


class Need(Value, frozen=True, kw_only=True):
    """Rows that must be read before the pass can go on."""

    ids: tuple[int, ...] = ()
    items: tuple[int, ...] = ()
    """Places of maps, all of whose items are wanted."""
    live: bool = False
    """Every step whose job is in the queue."""


class Resolution:
    """One workflow's pass. Made with what has happened; `need` and `supply` until nothing is needed."""

    def __init__(self, workflow: WorkflowRecord, graph: Graph, now: datetime) -> None:
        self.workflow = workflow
        self.jobs: list[tuple[StepRecord, NewJob]] = []
        """Steps that are released."""
        self.items: list[tuple[StepRecord, NewJob]] = []
        """Items of maps; they have no ids yet."""
        self.cancelled: list[int] = []
        """Jobs that must not run any more."""
        self.needed = Need()
        self.result: bytes | None = None
        self.failure: Failure | None = None
        self._graph, self._now = graph, now
        self._steps: dict[int, StepRecord] = {}
        self._changed: set[int] = set()
        self._items: dict[int, list[StepRecord]] = {}
        self._wanted: set[int] = set()
        self._wanted_items: set[int] = set()
        self._endings: list[StepEnding] = []
        self._unknown: set[int] = set()
        """Jobs that ended and whose rows were asked for."""
        self._counted: list[int] = []
        """Places of nodes one of whose parents has ended, once for each."""
        self._ready: list[int] = []
        """Places of nodes none of whose parents is left."""
        self._looking = self._stopping = False
        self._given = StepInputs(_params.decode(workflow.params), self._result)

    def end(self, endings: Iterable[StepEnding]) -> None:
        """These jobs have ended."""
        self._endings += endings

    def look(self) -> None:
        """Look at every step: what may run has not been released, or what must not has not been ended."""
        self._looking = True
        self._stopping = self.workflow.stopping is not None

    def stop(self, stopping: Stopping) -> None:
        """The workflow's own job is gone: nothing that wants success runs any more."""
        if self.workflow.stopping is None:
            self._change(stopping=stopping)
        self._change(paused_at=None)
        self.look()

    def supply(self, steps: Iterable[StepRecord]) -> None:
        """Rows that were asked for. What has been changed here is newer."""
        for step in steps:
            self._steps.setdefault(step.id, step)

    def supply_items(self, place: int, steps: Sequence[StepRecord]) -> None:
        """All items of a map, in order."""
        self.supply(steps)
        self._items[place] = [self._steps[step.id] for step in steps]

    def supply_live(self, steps: Iterable[StepRecord]) -> None:
        """Every step whose job is in the queue, items too."""
        stopping = self.workflow.stopping
        if stopping is not None:
            nodes = self._graph.nodes
            self.cancelled += [
                step.id
                for step in steps
                if nodes[step.place].kind is not NodeKind.MAP or step.item is not None
                if ends_with_the_workflow(nodes[step.place], stopping)
            ]
        self._stopping = False

    def need(self) -> bool:
        """Go as far as possible; answer whether anything is missing: `needed` says what."""
        self._wanted, self._wanted_items = set(), set()
        if self._looking:
            self._look()
        self._settle_endings()
        while self._counted or self._ready:
            before = len(self._counted), len(self._ready)
            self._count()
            self._release_ready()
            if (len(self._counted), len(self._ready)) == before and (self._wanted or self._wanted_items):
                break
        if not (self._wanted or self._wanted_items) and self.workflow.left == 0:
            self._finish()
        self.needed = Need(
            ids=tuple(sorted(self._wanted)), items=tuple(sorted(self._wanted_items)), live=self._stopping
        )
        return bool(self.needed.ids or self.needed.items or self.needed.live)

    @property
    def changed(self) -> list[StepRecord]:
        """Rows to be written."""
        return [self._steps[step_id] for step_id in sorted(self._changed)]

    def numbered(self, ids: Sequence[int]) -> list[tuple[StepRecord, NewJob]]:
        """The items with the ids they get."""
        return [
            (msgspec.structs.replace(step, id=step_id), job)
            for (step, job), step_id in zip(self.items, ids, strict=True)
        ]

    def reopen(self) -> None:
        """It has not ended after all."""
        self._change(state=WorkflowState.RUNNING, ended_at=None)

    def _look(self) -> None:
        if self._missing(self.workflow.step_ids):
            return
        self._looking = False
        known = set(self._ready)
        self._ready += [
            step.place
            for step in (self._steps[each] for each in self.workflow.step_ids)
            if step.state is StepState.WAITING and step.waits == 0 and step.place not in known
        ]

    def _settle_endings(self) -> None:
        left: list[StepEnding] = []
        for ending in self._endings:
            step = self._steps.get(ending.job_id)
            if step is None:
                if ending.job_id in self._unknown:
                    continue  # asked for, and no row came: it was deleted
                self._unknown.add(ending.job_id)
                self._wanted.add(ending.job_id)
                left.append(ending)
            elif step.state is StepState.LIVE:
                if step.item is not None and self._missing([self.workflow.step_ids[step.place]]):
                    left.append(ending)
                else:
                    self._settle(step, ending)
        self._endings = left

    def _settle(self, step: StepRecord, ending: StepEnding) -> None:
        state, cause = _ended(ending.verdict)
        result = ending.result if state is StepState.SUCCEEDED else None
        if step.item is None:
            self._end(step, state, cause, result=result)
            return
        self._put(step, state=state, cause=cause, result=result, ended_at=self._now)
        whole = self._steps[self.workflow.step_ids[step.place]]
        failed = whole.failed + (state in FAILED_STATES)
        self._put(whole, waits=whole.waits - 1, failed=failed)
        if whole.waits == 1:
            self._end(self._steps[whole.id], StepState.FAILED if failed else StepState.SUCCEEDED)

    def _end(
        self,
        step: StepRecord,
        state: StepState,
        cause: Cause | None = None,
        *,
        result: bytes | None = None,
        error: Failure | None = None,
    ) -> None:
        self._put(step, state=state, cause=cause, result=result, error=error, ended_at=self._now)
        workflow = self.workflow
        self._change(left=workflow.left - 1, failed=workflow.failed + (state in FAILED_STATES))
        self._counted += self._graph.children[step.place]
        if state is not StepState.SUCCEEDED and self._graph.children[step.place]:
            # What follows is likely to be skipped, link after link: better to read it all at once.
            self._missing(workflow.step_ids)

    def _count(self) -> None:
        left: list[int] = []
        for place in self._counted:
            step_id = self.workflow.step_ids[place]
            if self._missing([step_id]):
                left.append(place)
                continue
            step = self._steps[step_id]
            if step.state is not StepState.WAITING:
                continue  # after a retry of the parent: this one runs, or has run, for what it was before
            self._put(step, waits=step.waits - 1)
            if step.waits == 1:
                self._ready.append(place)
        self._counted = left

    def _release_ready(self) -> None:
        if self.workflow.paused_at is not None:
            self._ready.clear()  # they wait for nothing, and stay until the workflow goes on
            return
        ready, self._ready = self._ready, []
        for place in ready:
            if not self._decide(place):
                self._ready.append(place)

    def _decide(self, place: int) -> bool:
        """Release a step or skip it; False when something must be read before."""
        node, workflow = self._graph.nodes[place], self.workflow
        if self._missing([workflow.step_ids[each] for each in node.parents]):
            return False
        step = self._steps[workflow.step_ids[place]]
        parents = {each: self._steps[workflow.step_ids[each]] for each in node.parents}
        cause = self._graph.barred(place, parents, failed=workflow.failed, stopping=workflow.stopping)
        if cause is not None:
            self._end(step, StepState.SKIPPED, cause)
            return True
        if self._missing_items(self._graph.reads[place]):
            return False
        try:
            self._release(step, node)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other workflows of the pass go on
            message = str(error)[:1000]
            self._end(step, StepState.FAILED, error=Failure(type=type(error).__name__, message=message))
        return True

    def _release(self, step: StepRecord, node: Node) -> None:
        if node.only_if is not None:
            values = {name: self._given.value(each) for name, each in node.only_if.names.items()}
            if not evaluate(node.only_if.text, values):
                self._end(step, StepState.SKIPPED, Cause.CONDITION)
                return
        if node.kind is NodeKind.BARRIER:
            self._end(step, StepState.SUCCEEDED)
        elif node.over is not None:
            self._fan_out(step, node, self._given.items(node.over))
        else:
            self.jobs.append((step, new_job(node, self._given)))
            self._put(step, state=StepState.LIVE)

    def _fan_out(self, step: StepRecord, node: Node, values: list[object]) -> None:
        if not values:
            self._end(step, StepState.SUCCEEDED)
            return
        # All or none: an item that is too large fails the map before any of it runs.
        jobs = [new_job(node, self._given, value) for value in values]
        self.items += [
            (
                StepRecord(
                    id=0, workflow_id=step.workflow_id, place=step.place, item=item, state=StepState.LIVE
                ),
                job,
            )
            for item, job in enumerate(jobs)
        ]
        self._put(step, state=StepState.LIVE, waits=len(values))

    def _finish(self) -> None:
        workflow, returns = self.workflow, self._graph.definition.returns
        if workflow.state is not WorkflowState.RUNNING:
            return
        steps = [workflow.step_ids[each] for each in self._graph.returned]
        state = _final(workflow)
        if state is WorkflowState.SUCCEEDED and returns is not None:
            if self._missing(steps) or self._missing_items(self._graph.returned):
                return
            try:
                self.result = result_json(self._given.raw(returns))
            except InputError as error:
                state, self.failure = WorkflowState.FAILED, Failure(type="InputError", message=str(error))
        if state is WorkflowState.FAILED and self.failure is None:
            if workflow.stopping is None and self._missing(workflow.step_ids):
                return
            self.failure = Failure(type="WorkflowFailed", message=self._why())
        self._change(state=state, ended_at=self._now)

    def _why(self) -> str:
        if self.workflow.stopping is Stopping.EXPIRED:
            return "its deadline passed"
        steps = (self._steps[each] for each in self.workflow.step_ids)
        names = [self._graph.nodes[step.place].name for step in steps if step.state in FAILED_STATES]
        listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        return f"failed: {listed}"

    def _result(self, place: int) -> bytes | list[bytes]:
        if self._graph.nodes[place].kind is not NodeKind.MAP:
            return result_json_or_null(self._steps[self.workflow.step_ids[place]].result)
        return [result_json_or_null(self._steps[item.id].result) for item in self._items.get(place, [])]

    def _missing(self, ids: Iterable[int]) -> bool:
        missing = [each for each in ids if each not in self._steps]
        self._wanted.update(missing)
        return bool(missing)

    def _missing_items(self, places: Iterable[int]) -> bool:
        nodes = self._graph.nodes
        missing = [each for each in places if nodes[each].kind is NodeKind.MAP and each not in self._items]
        self._wanted_items.update(missing)
        return bool(missing)

    def _put(self, step: StepRecord, **changes: object) -> None:
        self._steps[step.id] = msgspec.structs.replace(self._steps[step.id], **changes)
        self._changed.add(step.id)

    def _change(self, **changes: object) -> None:
        self.workflow = msgspec.structs.replace(self.workflow, **changes)


def _ended(verdict: Verdict | None) -> tuple[StepState, Cause | None]:
    match verdict:
        case Verdict.SUCCEEDED:
            return StepState.SUCCEEDED, None
        case Verdict.DISCARDED:
            return StepState.SKIPPED, Cause.ITSELF
        case Verdict.DEAD | Verdict.CRASHED:
            return StepState.FAILED, None
        case _:
            return StepState.CANCELLED, None


def _final(workflow: WorkflowRecord) -> WorkflowState:
    if workflow.stopping in (Stopping.CANCELLED, Stopping.KILLED):
        return WorkflowState.CANCELLED
    if workflow.failed or workflow.stopping is not None:
        return WorkflowState.FAILED
    return WorkflowState.SUCCEEDED


class InputError(ValueError):
    """A step cannot be given what its node says; the text says why."""


class StepInputs:
    """The parameters and results that one workflow has by now."""

    def __init__(self, params: Mapping[str, object], result: Callable[[int], bytes | list[bytes]]) -> None:
        """`result` answers a step's JSON; of a map, that of each item."""
        self._params = params
        self._result = result

    def value(self, given: Input) -> object:
        """An input, decoded."""
        match given:
            case Constant():
                return given.value
            case Param():
                return _inside(self._params.get(given.name), given.path, given.name)
            case StepResult():
                found = self._result(given.step)
                whole = _decode(found) if isinstance(found, bytes) else [_decode(each) for each in found]
                return _inside(whole, given.path, "its result")
            case Items():
                return [self.value(each) for each in given.items]
            case Fields():
                return {name: self.value(each) for name, each in given.fields.items()}

    def raw(self, given: Input) -> object:
        """The same with whole results left in JSON, as they came: they need not be decoded on the way."""
        match given:
            case StepResult(path=()):
                found = self._result(given.step)
                if isinstance(found, bytes):
                    return msgspec.Raw(found)
                return [msgspec.Raw(each) for each in found]
            case Items():
                return [self.raw(each) for each in given.items]
            case Fields():
                return {name: self.raw(each) for name, each in given.fields.items()}
            case _:
                return self.value(given)

    def items(self, over: Input) -> list[object]:
        """What a map goes over."""
        found = self.raw(over)
        if isinstance(found, msgspec.Raw):
            found = _decode(found)
        if not isinstance(found, list):
            raise InputError(f"over: expected a list, got {shown(found)}")
        if len(found) > WIDEST:
            raise InputError(f"over: expected at most {WIDEST} items, got {len(found)}")
        return found


def new_job(node: Node, given: StepInputs, *first: object) -> NewJob:
    """The job of a step; of an item, when its own argument is given first."""
    args = [*first, *map(given.raw, node.args)]
    kwargs = {name: given.raw(each) for name, each in node.kwargs.items()}
    parts = {"args": args} if args else {}
    payload = _encode(parts | ({"kwargs": kwargs} if kwargs else {}))
    if len(payload) > LARGEST_INPUT:
        raise InputError(
            f"its input: expected at most {LARGEST_INPUT} bytes of JSON, got {len(payload)}; "
            "keep what is large elsewhere, and pass where"
        )
    return NewJob(
        task=node.task,
        payload=payload,
        queue=node.queue,
        priority=node.priority,
        delay=node.delay,
        max_attempts=node.max_attempts,
        expires=node.expires,
        limit_keys=tuple(_limit_key(each, args, kwargs) for each in node.limits),
    )


def result_json(value: object) -> bytes:
    """What a workflow returns, as JSON."""
    text = _encode(value)
    if len(text) > LARGEST_INPUT:
        raise InputError(f"its result: expected at most {LARGEST_INPUT} bytes of JSON, got {len(text)}")
    return text


def result_json_or_null(result: bytes | None) -> bytes:
    """A step's result in JSON; what is kept as nothing is null."""
    return _NULL if result is None else result


def _inside(value: object, path: Sequence[str | int], what: str) -> object:
    for depth, key in enumerate(path):
        try:
            value = cast("dict[object, object]", value)[key]
        except (KeyError, IndexError, TypeError):
            where = "".join(f"[{each!r}]" for each in path[: depth + 1])
            raise InputError(f"{what} has no {where}: it is {shown(value)}") from None
    return value


def _limit_key(limiting: Limiting, args: Sequence[object], kwargs: Mapping[str, object]) -> LimitKey:
    if limiting.by is None:
        return limiting.limit_key
    value = kwargs.get(limiting.by)
    if limiting.by not in kwargs and limiting.place is not None and limiting.place < len(args):
        value = args[limiting.place]
    if isinstance(value, msgspec.Raw):
        value = _decode(value)
    return msgspec.structs.replace(limiting.limit_key, key=key_of_value(value))
