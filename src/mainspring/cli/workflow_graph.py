"""`workflows graph`: a graph as text, or for a drawing program."""

from __future__ import annotations

import click

from mainspring.admin.workflows.graph import dot, drawn, edges, mermaid
from mainspring.admin.workflows.orders import Workflows
from mainspring.admin.workflows.views import plain
from mainspring.cli.graph_text import show_graph
from mainspring.cli.options import LARGEST_ID, store_options
from mainspring.cli.output import document
from mainspring.cli.session import Access
from mainspring.declare.registry import Registry
from mainspring.declare.workflow_task import PREFIX, WorkflowTask
from mainspring.errors import NotFound
from mainspring.model.workflow import Definition

States = dict[str, str] | None


@click.command()
@click.argument("which", metavar="ID|NAME")
@click.option(
    "--format", "form", type=click.Choice(["text", "mermaid", "dot"]), default="text", show_default=True
)
@store_options
def graph(which: str, form: str, access: Access, as_json: bool) -> None:
    """The graph of a workflow: of one by its id, with its states, or as it is declared.

    A NAME is looked up in the app that is named with -A; without one, or where the app does not declare
    it, the newest workflow of that name tells.
    """
    registry = access.registry()
    declared = None if registry is None or which.isdigit() else declared_graph(registry, which)
    definition, states = (
        (declared, None)
        if declared is not None
        else access.ask(lambda admin: _stored(admin.workflows, which))
    )
    tell(definition, states, form, as_json=as_json)


def tell(definition: Definition, states: States, form: str, *, as_json: bool) -> None:
    """Write a graph; with states, those of the steps as they stand."""
    nodes = drawn(definition)
    if as_json:
        made = [{**plain(each), **({} if states is None else {"state": states[each.name]})} for each in nodes]
        document({"name": definition.name, "nodes": made, "edges": [plain(each) for each in edges(nodes)]})
    elif form == "mermaid":
        click.echo(mermaid(nodes, states))
    elif form == "dot":
        click.echo(dot(definition.name, nodes, states))
    else:
        show_graph(definition.name, nodes, states)


def declared_graph(registry: Registry, name: str) -> Definition | None:
    """What an app declares under this name: its task knows the graph."""
    task = registry.tasks.get(f"{PREFIX}{name}")
    return task.definition if isinstance(task, WorkflowTask) else None


async def _stored(workflows: Workflows, which: str) -> tuple[Definition, States]:
    if which.isascii() and which.isdigit() and int(which) <= LARGEST_ID:
        view = await workflows.aget(int(which), items=0)
        definition = await workflows.adefinition(int(which))
        return definition, {each.name: each.state for each in view.nodes}
    found = await workflows.anewest(which)
    if found is None:
        raise NotFound("workflow", which)
    return found, None
