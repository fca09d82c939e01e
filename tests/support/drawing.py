"""Random workflows: any shape of graph, with maps, conditions, undoing and workflows inside."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from mainspring.model.workflow import (
    Condition,
    Constant,
    Definition,
    Fields,
    Input,
    Items,
    Node,
    NodeKind,
    Param,
    StepResult,
    When,
)

RESULTS: tuple[Any, ...] = (None, 1, 1, 2, "x", [], [1], [1, 2, 3], {"k": 1}, {"k": [2, 1]})
PARAMS: dict[str, Any] = {"day": "monday", "one": 1, "list": [1, 2], "deep": {"k": [7, 8]}}
WHENS = (When.SUCCESS, When.SUCCESS, When.SUCCESS, When.FAILURE, When.ALWAYS)


def draw(dice: Random, *, steps: int, inner: str | None = None, name: str = "flow") -> Definition:
    """A graph of so many nodes, and perhaps a barrier with undoing after it. `inner` is the task of steps
    that are workflows."""
    reach = dice.choice([1, 2, 5, steps])
    nodes = [_node(dice, place, reach, inner) for place in range(steps)]
    if dice.random() < 0.4:
        nodes += _undoing(dice, nodes)
    returns = None if dice.random() < 0.5 else _result(dice, dice.randrange(steps), nodes)
    return Definition(name=name, nodes=tuple(nodes), returns=returns)


def _node(dice: Random, place: int, reach: int, inner: str | None) -> Node:
    """Its parents are among the last few, so that some graphs are deep and some are wide."""
    near = range(max(0, place - reach), place)
    parents = dice.sample(near, min(len(near), dice.choice([0, 1, 1, 2, 3]))) if near else []
    if place > 2 and dice.random() < 0.05:
        parents = list(near)  # a join of many
    read = [each for each in parents if dice.random() < 0.5]
    node = Node(
        name=f"n{place}",
        task=inner if inner is not None and dice.random() < 0.15 else "t",
        parents=tuple(parents),
        args=tuple(_given(dice, each) for each in read),
        when=dice.choice(WHENS),
        max_attempts=dice.choice([1, 1, 2]),
    )
    if dice.random() < 0.2:
        node = msgspec.structs.replace(node, kind=NodeKind.MAP, over=_over(dice, parents))
    if dice.random() < 0.15:
        it = _given(dice, dice.choice(parents)) if parents else Param(name="one")
        node = msgspec.structs.replace(node, only_if=Condition(text="it == 1", names={"it": it}))
    return node


def _given(dice: Random, step: int) -> Input:
    whole = StepResult(step=step)
    return dice.choice(
        [
            whole,
            whole,
            whole,
            StepResult(step=step, path=("k",)),
            StepResult(step=step, path=(0,)),
            Items(items=(whole, Constant(value=[None]))),
            Fields(fields={"it": whole, "day": Param(name="day")}),
        ]
    )


def _over(dice: Random, parents: list[int]) -> Input:
    choices: list[Input] = [
        Constant(value=[]),
        Constant(value=[1]),
        Param(name="list"),
        Param(name="deep", path=("k",)),
        Items(items=(Param(name="one"), Constant(value="b"))),
    ]
    if parents:
        choices += [StepResult(step=dice.choice(parents))] * 5
    return dice.choice(choices)


def _result(dice: Random, step: int, nodes: list[Node]) -> Input:
    given = StepResult(step=step)
    return dice.choice(
        [given, given, StepResult(step=step, path=("k",)), Items(items=(given, StepResult(step=0)))]
    )


def _undoing(dice: Random, nodes: list[Node]) -> list[Node]:
    """What the builder makes of `undo`: a barrier after everything, and then what takes back, last first."""
    barrier = len(nodes)
    waited_for = {parent for node in nodes for parent in node.parents}
    last = tuple(place for place in range(barrier) if place not in waited_for)
    added = [Node(name="end", kind=NodeKind.BARRIER, parents=last)]
    before: list[int] = []
    for of in sorted(dice.sample(range(barrier), min(barrier, dice.randint(1, 3))), reverse=True):
        added.append(
            Node(
                name=f"undo{of}",
                kind=NodeKind.UNDO,
                task="t",
                of=of,
                args=(StepResult(step=of),),
                parents=(barrier, of, *before),
            )
        )
        before = [barrier + len(added) - 1]
    return added
