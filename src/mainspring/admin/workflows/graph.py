"""The graph of a workflow for people: nodes in layers, without barriers; also as text for Mermaid and
Graphviz.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Self

import msgspec
from msgspec import UNSET, UnsetType

from mainspring.errors import InvalidArgument
from mainspring.model.value import Value
from mainspring.model.workflow import Definition, NodeKind, When

_COLOURS = {
    "delayed": "#e5e7eb",
    "ready": "#e5e7eb",
    "running": "#bfdbfe",
    "ending": "#bfdbfe",
    "succeeded": "#bbf7d0",
    "failed": "#fecaca",
    "cancelled": "#fed7aa",
    "skipped": "#f3f4f6",
}
_SHAPES = {
    NodeKind.STEP: ("(", ")"),
    NodeKind.MAP: ("[[", "]]"),
    NodeKind.UNDO: ("{{", "}}"),
    NodeKind.BARRIER: ("(", ")"),
}


class DrawnNode(Value, frozen=True, kw_only=True):
    """One step of a definition, with its parents by name."""

    place: int
    """In the definition."""
    name: str
    kind: NodeKind
    task: str
    when: When
    condition: str | None
    parents: tuple[str, ...]
    layer: int
    """The number of steps before it on the longest path from the first steps."""
    undoes: str | None = None
    state: str | UnsetType = UNSET
    """The state of the step; absent in a declared graph."""


class Edge(Value, frozen=True, kw_only=True):
    """One step comes after another."""

    source: str
    target: str


class GraphView(Value, frozen=True, kw_only=True):
    """A graph as programs read it."""

    name: str
    nodes: tuple[DrawnNode, ...]
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, definition: Definition, states: Mapping[str, str] | None) -> Self:
        """Of a definition, with the states of its steps if they are given."""
        nodes = drawn(definition)
        if states is not None:
            nodes = tuple(msgspec.structs.replace(each, state=states[each.name]) for each in nodes)
        return cls(name=definition.name, nodes=nodes, edges=edges(nodes))


def drawn(definition: Definition) -> tuple[DrawnNode, ...]:
    """Its nodes in the order of the definition. Barriers are left out: undo steps come after the last
    step in any case."""
    nodes, layers = definition.nodes, _layers(definition)
    return tuple(
        DrawnNode(
            place=place,
            name=node.name,
            kind=node.kind,
            task=node.task,
            when=node.when,
            condition=None if node.only_if is None else node.only_if.text,
            parents=tuple(nodes[each].name for each in dict.fromkeys(_parents(definition, place))),
            layer=layers[place],
            undoes=None if node.of is None else nodes[node.of].name,
        )
        for place, node in enumerate(nodes)
        if node.kind is not NodeKind.BARRIER
    )


def named(nodes: tuple[DrawnNode, ...], name: str, workflow_id: int) -> DrawnNode:
    """The node of that name; InvalidArgument if the workflow has none."""
    found = next((each for each in nodes if each.name == name), None)
    if found is None:
        names = ", ".join(each.name for each in nodes[:20])
        raise InvalidArgument("step", name, f"a step of workflow {workflow_id}: {names}")
    return found


def edges(nodes: tuple[DrawnNode, ...]) -> tuple[Edge, ...]:
    """Every edge between two of these nodes."""
    return tuple(Edge(source=parent, target=node.name) for node in nodes for parent in node.parents)


def mermaid(nodes: Sequence[DrawnNode], states: Mapping[str, str] | None = None) -> str:
    """A flowchart for Mermaid; with states, coloured by them."""
    ids = {node.name: f"n{number}" for number, node in enumerate(nodes)}
    lines = ["flowchart TD"]
    for node in nodes:
        left, right = _SHAPES[node.kind]
        text = "<br/>".join(_escaped(each) for each in _texts(node, states))
        lines.append(f'    {ids[node.name]}{left}"{text}"{right}')
    for node in nodes:
        arrow = {When.SUCCESS: "-->", When.FAILURE: "-. on failure .->", When.ALWAYS: "-. always .->"}
        lines += [f"    {ids[parent]} {arrow[node.when]} {ids[node.name]}" for parent in node.parents]
    used = sorted(set((states or {}).values()) & _COLOURS.keys())
    lines += [f"    classDef {state} fill:{_COLOURS[state]}" for state in used]
    for state in used:
        named = ",".join(ids[node.name] for node in nodes if (states or {}).get(node.name) == state)
        lines.append(f"    class {named} {state}")
    return "\n".join(lines)


def dot(name: str, nodes: Sequence[DrawnNode], states: Mapping[str, str] | None = None) -> str:
    """A digraph for Graphviz; with states, coloured by them."""
    lines = [f"digraph {_quoted(name)} {{", "    node [shape=box, style=rounded]"]
    for node in nodes:
        state = (states or {}).get(node.name, "")
        colour = _COLOURS.get(state)
        filled = "" if colour is None else f', style="rounded,filled", fillcolor="{colour}"'
        more = ", peripheries=2" if node.kind is NodeKind.MAP else ""
        label = _quoted("\n".join(_texts(node, states)))
        lines.append(f"    {_quoted(node.name)} [label={label}{more}{filled}]")
    for node in nodes:
        style = "" if node.when is When.SUCCESS else f' [style=dashed, label="{node.when.value}"]'
        lines += [f"    {_quoted(parent)} -> {_quoted(node.name)}{style}" for parent in node.parents]
    return "\n".join([*lines, "}"])


def _layers(definition: Definition) -> dict[int, int]:
    nodes = definition.nodes
    order = TopologicalSorter({place: node.parents for place, node in enumerate(nodes)}).static_order()
    ends: dict[int, int] = {}  # the layer of the nodes after each node
    layers: dict[int, int] = {}
    for place in order:
        layers[place] = max((ends[each] for each in nodes[place].parents), default=0)
        ends[place] = layers[place] + (nodes[place].kind is not NodeKind.BARRIER)
    return layers


def _parents(definition: Definition, place: int) -> Iterator[int]:
    """The drawn parents. The steps before a barrier replace the barrier, except for an undo step, which needs
    no edge from each of them."""
    node = definition.nodes[place]
    for parent in node.parents:
        if definition.nodes[parent].kind is not NodeKind.BARRIER:
            yield parent
        elif node.kind is not NodeKind.UNDO:
            yield from _parents(definition, parent)


def _escaped(text: str) -> str:
    """Escape a label for Mermaid, which reads entities."""
    marks = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "`": "#96;"}
    return "".join(marks.get(each, each) for each in text if each.isprintable())


def _texts(node: DrawnNode, states: Mapping[str, str] | None) -> list[str]:
    condition = [] if node.condition is None else [f"if {node.condition}"]
    undoes = [] if node.undoes is None else [f"undoes {node.undoes}"]
    state = [] if states is None else [states[node.name]]
    return [node.name, *condition, *undoes, *state]


def _quoted(text: str) -> str:
    """Quote a string for Graphviz, which uses the backslash."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
