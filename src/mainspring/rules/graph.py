"""Workflows: which step runs once its parents have ended, which is skipped, which run again on a retry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import msgspec

from mainspring.errors import UsageError
from mainspring.model.value import Value
from mainspring.model.workflow import (
    LIVE_STEPS,
    Cause,
    Constant,
    Definition,
    Fields,
    Input,
    Items,
    Node,
    NodeKind,
    Param,
    StepRecord,
    StepResult,
    StepState,
    Stopping,
    When,
    WorkflowRecord,
    WorkflowState,
)

FAILED_STATES = (StepState.FAILED, StepState.CANCELLED)
_CUT_OFF = (Cause.FAILURE, Cause.STOPPED)


class Graph:
    """A definition with its edges in both directions: which steps wait for a step, and which read it."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.nodes = definition.nodes
        children: list[list[int]] = [[] for _ in self.nodes]
        for place, node in enumerate(self.nodes):
            for parent in set(node.parents):
                children[parent].append(place)
        self.children = tuple(map(tuple, children))
        self.reads = tuple(frozenset(_read_by(node)) for node in self.nodes)
        self.returned = frozenset(() if definition.returns is None else steps_read(definition.returns))

    def place(self, name: str) -> int | None:
        """The place of the node with that name."""
        return next((place for place, node in enumerate(self.nodes) if node.name == name), None)

    def descendants(self, places: frozenset[int]) -> frozenset[int]:
        """Everything that comes after these, themselves too."""
        found, rest = set(places), list(places)
        while rest:
            for child in self.children[rest.pop()]:
                if child not in found:
                    found.add(child)
                    rest.append(child)
        return frozenset(found)

    def barred(
        self, place: int, parents: Mapping[int, StepRecord], *, failed: int, stopping: Stopping | None
    ) -> Cause | None:
        """Why a step whose parents have all ended is skipped; None when it runs. `failed` counts the
        workflow's steps that failed."""
        node = self.nodes[place]
        if stopping is Stopping.KILLED:
            return Cause.STOPPED
        if node.kind is NodeKind.BARRIER:
            return None
        if node.kind is NodeKind.UNDO:
            return _nothing_to_undo(node, parents, failed=failed, stopping=stopping)
        if node.when is When.ALWAYS:
            return None
        if node.when is When.FAILURE:
            if stopping is Stopping.CANCELLED:
                return Cause.STOPPED
            return None if any(map(_is_bad, parents.values())) else Cause.CONDITION
        if stopping is not None:
            return Cause.STOPPED
        if any(map(_is_bad, parents.values())):
            return Cause.FAILURE
        if any(parents[each].state is StepState.SKIPPED for each in self.reads[place]):
            return Cause.INPUT
        return None


def steps_read(given: Input) -> Iterator[int]:
    """Places of the steps whose results an input is made of."""
    match given:
        case StepResult():
            yield given.step
        case Items():
            for item in given.items:
                yield from steps_read(item)
        case Fields():
            for item in given.fields.values():
                yield from steps_read(item)
        case Constant() | Param():
            return


def ends_with_the_workflow(node: Node, stopping: Stopping) -> bool:
    """Whether a job of this step is taken away when its workflow is stopped."""
    if stopping is Stopping.KILLED:
        return True
    if node.kind is NodeKind.UNDO or node.when is When.ALWAYS:
        return False
    # What is for failures runs after a deadline: a second look must not take it away.
    return node.when is When.SUCCESS or stopping is Stopping.CANCELLED


def _read_by(node: Node) -> Iterator[int]:
    inputs = [*node.args, *node.kwargs.values()]
    inputs += [] if node.over is None else [node.over]
    inputs += [] if node.only_if is None else list(node.only_if.names.values())
    for each in inputs:
        yield from steps_read(each)


def _is_bad(step: StepRecord) -> bool:
    return step.state in FAILED_STATES or (step.state is StepState.SKIPPED and step.cause in _CUT_OFF)


def _nothing_to_undo(
    node: Node, parents: Mapping[int, StepRecord], *, failed: int, stopping: Stopping | None
) -> Cause | None:
    whole = not failed and stopping is None
    undoable = node.of is not None and parents[node.of].state is StepState.SUCCEEDED
    return None if undoable and not whole else Cause.CONDITION


class Revival(Value, frozen=True, kw_only=True):
    """What a retry does."""

    workflow: WorkflowRecord
    steps: tuple[StepRecord, ...]
    """Rows that change."""
    revived: tuple[int, ...]
    """Steps and items whose own job goes on: from its dead letter, or from when it was cancelled."""
    anew: tuple[int, ...]
    """Steps that ended, and whose job is made anew when they are due."""
    emptied: tuple[int, ...]
    """Places of maps that are spread out anew."""

    def changed(self, fences: Mapping[int, int]) -> list[StepRecord]:
        """Rows to be written, with how often the jobs of those that run anew had been claimed."""
        return [msgspec.structs.replace(each, fence=fences.get(each.id, each.fence)) for each in self.steps]


def failed_places(steps: Mapping[int, StepRecord]) -> frozenset[int]:
    """Where the nodes are that failed or were cancelled."""
    return frozenset(place for place, step in steps.items() if step.state in FAILED_STATES)


def retried(
    graph: Graph,
    workflow: WorkflowRecord,
    steps: Mapping[int, StepRecord],
    items: Mapping[int, Sequence[StepRecord]],
    chosen: frozenset[int],
    *,
    revivable: Set[int],
) -> Revival | None:
    """Run these steps, which failed, again, and everything that came after them. `items` has those of
    each map among them; `revivable` are the jobs of both that can go on. None when there is nothing to do."""
    cut_off = frozenset(place for place, step in steps.items() if step.cause in _CUT_OFF)
    again = graph.descendants(chosen | (cut_off if chosen >= failed_places(steps) else frozenset()))
    if not again:
        return None
    _refuse_what_was_undone(graph, steps)
    changed = dict(steps)
    revived: list[int] = []
    extra: list[StepRecord] = []
    for place in again:
        step = steps[place]
        lost = [item for item in items.get(place, ()) if item.state in FAILED_STATES]
        # One that comes after another that runs again waits for it, and is given what that makes then.
        first = place in chosen and again.isdisjoint(graph.nodes[place].parents)
        if first and lost:
            _refuse_lost_items(graph.nodes[place].name, lost, revivable)
            revived += [item.id for item in lost]
            extra += [_live(item) for item in lost]
            changed[place] = _live(step, waits=len(lost))
        elif first and step.state is StepState.FAILED and step.id in revivable:
            revived.append(step.id)
            changed[place] = _live(step)
        elif step.state is not StepState.LIVE:
            changed[place] = _waiting(step)
    counted = _counted(graph, changed)
    return Revival(
        workflow=_running(workflow, counted.values()),
        steps=(*(each for place, each in counted.items() if each != steps[place]), *extra),
        revived=tuple(sorted(revived)),
        anew=tuple(
            sorted(
                step.id
                for place, step in counted.items()
                if step.state is StepState.WAITING and steps[place].state is not StepState.WAITING
            )
        ),
        emptied=tuple(
            sorted(
                place
                for place, step in counted.items()
                if graph.nodes[place].kind is NodeKind.MAP and step.state is StepState.WAITING
            )
        ),
    )


def forked(graph: Graph, steps: Mapping[int, StepRecord], place: int) -> dict[int, StepRecord]:
    """The steps of a new workflow that runs again from this one on, and has what the others made."""
    lost = {
        each
        for each, step in steps.items()
        if step.state in (*LIVE_STEPS, *FAILED_STATES) or step.cause in _CUT_OFF
    }
    undone = {of for each in _undone(graph, steps) if (of := graph.nodes[each].of) is not None}
    again = graph.descendants(frozenset({place} | lost | undone))
    kept = {each: _waiting(step) if each in again else step for each, step in steps.items()}
    return {each: msgspec.structs.replace(step, fence=0) for each, step in _counted(graph, kept).items()}


def _refuse_what_was_undone(graph: Graph, steps: Mapping[int, StepRecord]) -> None:
    done = [graph.nodes[place].name for place in _undone(graph, steps)]
    if done:
        raise UsageError(
            f"it has begun to undo what it did ({', '.join(done[:5])}): start it anew, or fork it"
        )


def _undone(graph: Graph, steps: Mapping[int, StepRecord]) -> list[int]:
    """Places of what has begun to take back a step."""
    return [
        place
        for place, step in steps.items()
        if graph.nodes[place].kind is NodeKind.UNDO
        and step.state not in (StepState.WAITING, StepState.SKIPPED)
    ]


def _refuse_lost_items(name: str, items: Sequence[StepRecord], revivable: Set[int]) -> None:
    lost = [str(item.item) for item in items if item.id not in revivable]
    if lost:
        listed = ", ".join(lost[:5])
        raise UsageError(f"{name}: what items {listed} were given is not on record any more: fork from it")


def _running(workflow: WorkflowRecord, steps: Iterable[StepRecord]) -> WorkflowRecord:
    nodes = list(steps)
    return msgspec.structs.replace(
        workflow,
        state=WorkflowState.RUNNING,
        stopping=None,
        ended_at=None,
        left=sum(step.state in LIVE_STEPS for step in nodes),
        failed=sum(step.state in FAILED_STATES for step in nodes),
    )


def _counted(graph: Graph, steps: Mapping[int, StepRecord]) -> dict[int, StepRecord]:
    """With the parents of those that wait counted."""
    return {
        place: msgspec.structs.replace(
            step, waits=sum(steps[each].state in LIVE_STEPS for each in set(graph.nodes[place].parents))
        )
        if step.state is StepState.WAITING
        else step
        for place, step in steps.items()
    }


def _waiting(step: StepRecord) -> StepRecord:
    return msgspec.structs.replace(
        step, state=StepState.WAITING, cause=None, result=None, error=None, ended_at=None, failed=0
    )


def _live(step: StepRecord, *, waits: int = 0) -> StepRecord:
    return msgspec.structs.replace(_waiting(step), state=StepState.LIVE, waits=waits)
