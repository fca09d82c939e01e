"""The server of the API and the dashboard, alone or beside a worker and a scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mainspring.admin.order import login_name
from mainspring.cli.output import printable, say
from mainspring.errors import InvalidConfig, UsageError

if TYPE_CHECKING:
    from mainspring.app import Mainspring
    from mainspring.web.server import Server

EXTRA = "pip install 'mainspring[server]'"


def open_server(app: Mainspring, *, port: int | None = None) -> Server:
    """Bound to its address, and not yet serving."""
    try:
        from mainspring.web.server import Server
    except ModuleNotFoundError as missing:
        raise UsageError(f"server: {missing.name} is missing; it comes with {EXTRA}") from None
    return Server(app, port=port)


@asynccontextmanager
async def dashboard(app: Mainspring, tell: Callable[[str], None] = say) -> AsyncIterator[None]:
    """The same beside a worker and a scheduler in their process, for `dev`: at a free port if its own is
    taken, and without it where the extra is not there."""
    try:
        made = _beside(app, tell)
    except UsageError as missing:
        tell(f"  no dashboard: {missing}")
        yield
        return
    running = asyncio.ensure_future(made.run())
    try:
        await _tell_link(app, made, tell)
        yield
    finally:
        made.stop()
        await running


def _beside(app: Mainspring, tell: Callable[[str], None]) -> Server:
    try:
        return open_server(app)
    except InvalidConfig as taken:
        if taken.field != "server.port":
            raise
        tell(f"  {printable(taken.got)} is taken: the dashboard is elsewhere")
        return open_server(app, port=0)


async def _tell_link(app: Mainspring, made: Server, tell: Callable[[str], None]) -> None:
    from mainspring.web.server import passing_token

    token = await passing_token(app, author=login_name())
    # Behind the #, what a browser sends nowhere: the sign-in page reads it.
    tell(f"  Dashboard  {printable(made.url)}/login#token={token}")
