"""From declared steps to the definition that is stored: nodes in the order of declaration, then what is
undone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from mainspring.declare.drafts import Draft
from mainspring.declare.limiting import limitings
from mainspring.declare.ordering import Ordering, children_of, topological
from mainspring.errors import InvalidWorkflow
from mainspring.model.workflow import Definition, Input, Kind, Node

LARGEST = 4 * 1024 * 1024
_encode = msgspec.json.Encoder().encode

BARRIER = "(barrier)"
"""No name that a step can have."""


def compiled(
    name: str, drafts: Sequence[Draft], undos: Sequence[Draft], ordering: Ordering, returns: Input | None
) -> Definition:
    """The definition of a graph that has been checked. Places of steps are those of their drafts."""
    nodes = [_node(draft, ordering.parents[place]) for place, draft in enumerate(drafts)]
    if undos:
        barrier = len(nodes)
        nodes.append(Node(name=BARRIER, kind=Kind.BARRIER, parents=_last(ordering)))
        places = {draft.of: barrier + 1 + index for index, draft in enumerate(undos)}
        later = _next_undone(ordering, frozenset(place for place in places if place is not None))
        nodes += [
            _node(draft, draft.reads | {barrier, of} | {places[each] for each in later[of]})
            for draft, of in ((draft, draft.of) for draft in undos)
            if of is not None
        ]
    definition = Definition(name=name, nodes=tuple(nodes), returns=returns)
    if (size := len(_encode(definition))) > LARGEST:
        expected = f"a definition of at most {LARGEST} bytes: fewer constants, or fewer steps that read many"
        raise InvalidWorkflow(name, f"{size} bytes", expected)
    return definition


def _node(draft: Draft, parents: Iterable[int]) -> Node:
    task = draft.task
    return Node(
        name=draft.name,
        kind=draft.kind,
        task=task.name,
        args=draft.args,
        kwargs=draft.kwargs,
        over=draft.over,
        parents=tuple(sorted(parents)),
        when=draft.when,
        only_if=draft.only_if,
        of=draft.of,
        queue=task.queue,
        priority=task.priority,
        max_attempts=task.attempts,
        delay=task.delay,
        expires=task.expires,
        limits=limitings(draft),
    )


def _last(ordering: Ordering) -> tuple[int, ...]:
    """Steps that nothing waits for."""
    return tuple(place for place, below in enumerate(children_of(ordering.parents)) if not below)


def _next_undone(ordering: Ordering, undone: frozenset[int]) -> list[list[int]]:
    """Of each step, the nearest ones below it that can be undone: they are, before it is."""
    children, found = children_of(ordering.parents), [0] * len(ordering.parents)
    # As sets of bits, for there may be as many as steps.
    for place in reversed(topological(ordering.parents)):
        for child in children[place]:
            found[place] |= 1 << child if child in undone else found[child]
    return [[each for each in sorted(undone) if mask >> each & 1] for mask in found]
