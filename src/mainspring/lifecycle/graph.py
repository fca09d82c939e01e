"""Which step of a workflow runs, and which is skipped, once its parents have ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mainspring.model.workflow import (
    Cause,
    Constant,
    Definition,
    Fields,
    Input,
    Items,
    Kind,
    Node,
    Param,
    Result,
    Step,
    StepState,
    Stopping,
    When,
)

FAILED_STATES = (StepState.FAILED, StepState.CANCELLED)
_CUT_OFF = (Cause.FAILURE, Cause.STOPPED)


class Graph:
    """A definition read downwards as well: who waits for whom, and who reads what."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.nodes = definition.nodes
        children: list[list[int]] = [[] for _ in self.nodes]
        for place, node in enumerate(self.nodes):
            for parent in set(node.parents):
                children[parent].append(place)
        self.children = tuple(map(tuple, children))
        self.reads = tuple(frozenset(_read_by(node)) for node in self.nodes)
        self.returned = frozenset(() if definition.returns is None else read(definition.returns))

    def place(self, name: str) -> int | None:
        """Where the node of that name is."""
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
        self, place: int, parents: Mapping[int, Step], *, failed: int, stopping: Stopping | None
    ) -> Cause | None:
        """Why a step whose parents have all ended is skipped; None when it runs. `failed` counts the
        workflow's steps that failed."""
        node = self.nodes[place]
        if stopping is Stopping.KILLED:
            return Cause.STOPPED
        if node.kind is Kind.BARRIER:
            return None
        if node.kind is Kind.UNDO:
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


def read(given: Input) -> Iterator[int]:
    """Places of the steps whose results an input is made of."""
    match given:
        case Result():
            yield given.step
        case Items():
            for item in given.items:
                yield from read(item)
        case Fields():
            for item in given.fields.values():
                yield from read(item)
        case Constant() | Param():
            return


def ends_with_the_workflow(node: Node, stopping: Stopping) -> bool:
    """Whether a job of this step is taken away when its workflow is stopped."""
    if stopping is Stopping.KILLED:
        return True
    if node.kind is Kind.UNDO or node.when is When.ALWAYS:
        return False
    # What is for failures runs after a deadline: a second look must not take it away.
    return node.when is When.SUCCESS or stopping is Stopping.CANCELLED


def _read_by(node: Node) -> Iterator[int]:
    inputs = [*node.args, *node.kwargs.values()]
    inputs += [] if node.over is None else [node.over]
    inputs += [] if node.only_if is None else list(node.only_if.names.values())
    for each in inputs:
        yield from read(each)


def _is_bad(step: Step) -> bool:
    return step.state in FAILED_STATES or (step.state is StepState.SKIPPED and step.cause in _CUT_OFF)


def _nothing_to_undo(
    node: Node, parents: Mapping[int, Step], *, failed: int, stopping: Stopping | None
) -> Cause | None:
    whole = not failed and stopping is None
    undoable = node.of is not None and parents[node.of].state is StepState.SUCCEEDED
    return None if undoable and not whole else Cause.CONDITION
