"""The graph of a workflow in the words of drawing programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mainspring.admin.workflows.graph import DrawnNode
from mainspring.model.workflow import NodeKind, When

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


_SHAPES = {
    NodeKind.STEP: ("(", ")"),
    NodeKind.MAP: ("[[", "]]"),
    NodeKind.UNDO: ("{{", "}}"),
    NodeKind.BARRIER: ("(", ")"),
}


def _texts(node: DrawnNode, states: Mapping[str, str] | None) -> list[str]:
    condition = [] if node.condition is None else [f"if {node.condition}"]
    undoes = [] if node.undoes is None else [f"undoes {node.undoes}"]
    state = [] if states is None else [states[node.name]]
    return [node.name, *condition, *undoes, *state]


def _escaped(text: str) -> str:
    """For a label of Mermaid's, which reads entities."""
    marks = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "`": "#96;"}
    return "".join(marks.get(each, each) for each in text if each.isprintable())


def _quoted(text: str) -> str:
    """For Graphviz, whose strings know the backslash."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
