"""`server`: the HTTP API and the dashboard, which `dev` serves too."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from mainspring.admin.order import login_name
from mainspring.cli.errors import by_signal
from mainspring.cli.options import Whole, app_argument, log_options, settings_options
from mainspring.cli.output import printable, say
from mainspring.cli.session import Access, naming_the_database, refuse_memory
from mainspring.errors import InvalidConfig, UsageError

if TYPE_CHECKING:
    from mainspring.app import Mainspring
    from mainspring.web.server import Server


@click.command()
@app_argument(required=False)
@click.option("--host", metavar="ADDRESS", help="Where to listen; default: 127.0.0.1.")
@click.option("--port", type=Whole(), metavar="N", help="Default: 8383; 0 takes a free one.")
@click.option("--insecure", is_flag=True, help="Listen to other machines although no sign-in is set up.")
@settings_options
@log_options
def server(
    access: Access,
    host: str | None,
    port: int | None,
    insecure: bool,
    **log: object,
) -> None:
    """Serve the HTTP API and the dashboard until stopped.

    With APP, requests to enqueue are checked against its tasks, and its schedules can be applied. At the
    first start, when there is no token yet, one is made and shown, once.
    """
    from mainspring.cli.logs import set_up_logging
    from mainspring.telemetry.log import log_event

    told = {f"log.{name.removeprefix('log_')}": value for name, value in log.items()}
    app = access.load({"server.host": host, "server.port": port, **told})
    refuse_memory(app)
    set_up_logging(app.settings, sys.stderr, every_run=False)
    app._telemetry = app._telemetry.behind(log_event)
    with naming_the_database(app):
        code = asyncio.run(_serve(app, insecure=insecure))
    click.get_current_context().exit(code)


async def _serve(app: Mainspring, *, insecure: bool) -> int:
    made = open_server(app)
    stops: list[int] = []
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def stop(number: int) -> None:
        stops.append(number)
        if len(stops) == 1:
            made.stop()
        elif task is not None:
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        await _welcome(app, made, insecure=insecure)
        await made.run()
    except asyncio.CancelledError:
        return by_signal(stops[-1]) if stops else 1
    finally:
        made.close()
        await app.aclose()
    return 0


async def _welcome(app: Mainspring, made: Server, *, insecure: bool) -> None:
    from mainspring.web.server import first_token

    token = await first_token(app, author=login_name(), insecure=insecure)
    click.echo(f"Mainspring listens at {printable(made.url)}")
    if token is not None:
        click.echo(f"Sign in with this token; it is shown only now: {token}")


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
