"""Django: a database's alias, or its connection."""

from __future__ import annotations

import sys
from typing import Any

from mainspring.errors import InvalidArgument
from mainspring.store.borrowed.guest import Params, Result, no_transaction, pyformat, rows


class DjangoGuest:
    """A connection of Django's, through its own cursor, so that its instrumentation sees us too."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.dialect: str = connection.vendor

    def check(self) -> None:
        if not self._connection.in_atomic_block and self._connection.get_autocommit():
            raise no_transaction("Django connection", "use it inside `with transaction.atomic():`")

    def run(self, text: str, params: Params) -> Result:
        with self._connection.cursor() as cursor:
            cursor.execute(pyformat(text), dict(params))
            if not cursor.description:
                return Result([], cursor.rowcount)
            return Result(
                rows([column[0] for column in cursor.description], cursor.fetchall()), cursor.rowcount
            )


def by_alias(alias: str) -> Any:
    """The connection of this name, in this thread."""
    django = sys.modules.get("django.db")
    if django is None:
        expected = "a connection: a name is an alias of Django's, which is not in use here"
        raise InvalidArgument("tx", alias, expected)
    if alias not in django.connections:
        raise InvalidArgument("tx", alias, f"one of Django's databases: {', '.join(django.connections)}")
    return django.connections[alias]
