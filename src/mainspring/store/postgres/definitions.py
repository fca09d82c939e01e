"""Numbers of definitions, and their graphs."""

from __future__ import annotations

from mainspring.model.workflow import Definition
from mainspring.rules.graph import Graph
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Database
from mainspring.store.workflows.definitions import read, written

MOST_KNOWN = 1000


class Definitions:
    """A cache: a definition, once written, keeps its number and never changes. It has a session of its own,
    so that a number it gives is on record whatever becomes of the transaction that asked for it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids: dict[bytes, int] = {}
        self._graphs: dict[int, Graph] = {}
        database.lives.on_change(self._ids.clear)
        database.lives.on_change(self._graphs.clear)

    async def id(self, definition: Definition, at: Stamp) -> int:
        """The number of a definition, given where it is new."""
        digest, text = written(definition)
        if len(self._ids) > MOST_KNOWN:
            self._ids.clear()
        which = {"name": definition.name, "digest": digest}
        while digest not in self._ids:
            # No row from the second: another process wrote this one, or took the version, in between.
            found = await self._database.fetch("definition_id", **which)
            found = found or await self._database.fetch("put_definition", **which, definition=text, at=at)
            if found:
                self._ids[digest] = found[0]["id"]
        return self._ids[digest]

    async def graph(self, definition_id: int) -> Graph:
        """The graph of a definition."""
        if definition_id not in self._graphs:
            if len(self._graphs) > MOST_KNOWN:
                self._graphs.clear()
            [row] = await self._database.fetch("definitions", ids=[definition_id])
            self._graphs[definition_id] = Graph(read(row["definition"]))
        return self._graphs[definition_id]
