"""`top`: queues, running jobs, next fires and failures, live, and the orders that its keys give."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

import click

from mainspring.admin.health.top import Frame, FrameView, look
from mainspring.admin.redact import Redaction
from mainspring.app import Mainspring
from mainspring.cli.options import author_option, length, store_options
from mainspring.cli.output import document, line
from mainspring.cli.session import Access, admin_of, naming_the_database, refuse_memory
from mainspring.cli.top_panes import Order, plain
from mainspring.errors import UsageError
from mainspring.store.store import Store

_FASTEST, _SLOWEST = timedelta(milliseconds=200), timedelta(hours=1)


def _every(text: str) -> timedelta:
    found = length(text)
    if not _FASTEST <= found <= _SLOWEST:
        raise click.BadParameter("expected from 200ms to 1h")
    return found


@click.command()
@click.option("--once", is_flag=True, help="Print one frame as plain text and exit.")
@click.option("--every", type=_every, default="1s", show_default=True, help="How often to refresh.")
@author_option
@store_options
def top(once: bool, every: timedelta, author: str, access: Access, as_json: bool) -> None:
    """Watch queues, jobs, next fires and failures live.

    Press ? for the keys: pause, retry, cancel, trigger. Every order asks first. --json prints one frame, as
    --once does.
    """
    if once or as_json:
        settings = access.loaded.settings
        redaction = Redaction(settings.privacy.redact)
        frame = access.read(
            lambda store, clock: look(store, clock, alerts=settings.alerts, redaction=redaction)
        )
        if as_json:
            document(FrameView.of(frame))
        else:
            for each in plain(frame, access.where()):
                line(each)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("--once: expected, for there is no terminal to draw on")
    app = access.load()
    refuse_memory(app)
    with naming_the_database(app):
        code = asyncio.run(_watch(app, access.where(), every, author))
    click.get_current_context().exit(code)


async def _watch(app: Mainspring, where: str, every: timedelta, author: str) -> int:
    """The first read must succeed, so that a wrong URL is reported at once; after that the screen stays."""
    try:
        store: Store = await app._store(prepare=False)
        await store.verify()

        redaction = Redaction(app.settings.privacy.redact)
        admin = admin_of(app, author)

        async def read() -> Frame:
            return await look(store, app._clock, alerts=app.settings.alerts, redaction=redaction)

        async def carry_out(order: Order) -> str:
            return await order.carry_out(admin)

        first = await read()

        try:
            from mainspring.cli.top_screen import TopScreen
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in ("textual", "rich"):
                raise
            raise UsageError(
                "top: the live screen needs textual: pip install 'mainspring[tui]'; --once does without"
            ) from None
        screen = TopScreen(first, read, carry_out, where=where, every=every, clock=app._clock)
        await screen.run_async()
        return screen.return_code or 0
    finally:
        await app.aclose()
