"""`dead replay`: put dead jobs back, one or many, no faster than asked."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence

import click

from mainspring.admin.admin import Admin
from mainspring.admin.dead_letters import Replayed, ReplayedPage
from mainspring.admin.why.job import retry_words
from mainspring.cli.author import author_option
from mainspring.cli.dead_filter import selection, words
from mainspring.cli.jobs import report
from mainspring.cli.options import store_options
from mainspring.cli.output import document, say
from mainspring.cli.session import Access
from mainspring.errors import shown
from mainspring.model.history import DeadFilter

_NAMED = 10
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_RATE = re.compile(r"([0-9]{1,6})(?:/([smh]))?", re.ASCII)


def rate(text: str) -> float:
    """So many a second, minute or hour."""
    found = _RATE.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise click.BadParameter(f"expected a rate such as 50/s, 100/m or 10/h, got {shown(text)}")
    return int(found[1]) / _SECONDS[found[2] or "s"]


@click.command()
@selection
@click.option(
    "--rate", "per_second", type=rate, metavar="N/s", help="No faster than this: 50/s, 100/m, 10/h."
)
@author_option
@store_options
@click.pass_context
def replay(
    ctx: click.Context,
    which: tuple[int, ...] | DeadFilter,
    per_second: float | None,
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Put dead jobs back into their queues, with all attempts restored and without a deadline.

    Many are put back from the newest id down. One that is cut short says how to go on.
    """
    if isinstance(which, DeadFilter) or per_second is not None:
        chosen = which if isinstance(which, DeadFilter) else DeadFilter(ids=which)
        bulk = Bulk(chosen, per_second)
        try:
            access.ask(bulk.run, by=author)
        finally:
            bulk.tell(as_json=as_json)
        return
    done = access.ask(lambda admin: admin.dead_letters.areplay(which), by=author)
    code = report(done, as_json=as_json)
    say(f"{sum(each.effect == 'replayed' for each in done)} replayed")
    ctx.exit(code)


class Bulk:
    """A replay of many letters, and how far it is."""

    def __init__(self, which: DeadFilter, per_second: float | None) -> None:
        self._which = which
        self._per_second = per_second
        self._done = Replayed()
        self._whole = False

    async def run(self, admin: Admin) -> None:
        """Put them back, with a bar for a terminal."""
        total = await admin.dead_letters.acount(self._which)
        with click.progressbar(length=total, label="replaying", file=sys.stderr, show_pos=True) as bar:

            def on_page(page: ReplayedPage) -> None:
                self._done = self._done.with_page(page)
                bar.update(page.looked_at)

            try:
                await admin.dead_letters.areplay_all(
                    self._which, per_second=self._per_second, on_page=on_page
                )
                self._whole = True
            except asyncio.CancelledError:
                bar.finish()
                raise

    def tell(self, *, as_json: bool) -> None:
        """What was done, also when it was cut short: those are in their queues."""
        done = self._done
        if done.last_id is None and not self._whole:
            return  # nothing began: the error says all there is to say
        if as_json:
            replayed = {"replayed": len(done.job_ids), "ids": done.job_ids, "complete": self._whole}
            left = {"left": done.left, "workflows": done.workflows} if done.left else {}
            document({**replayed, **left})
        else:
            click.echo(f"{len(done.job_ids)} replayed")
        if done.left:
            say(_left(done.left, done.workflows))
        if done.last_id is not None and not self._whole:
            say(f"cut short; go on with: mainspring dead replay {_rest(self._which, done.last_id)}")


def _left(count: int, workflows: Sequence[int]) -> str:
    named = ", ".join(map(str, workflows[:_NAMED]))
    more = f" and {len(workflows) - _NAMED} more" if len(workflows) > _NAMED else ""
    whose = f"workflow {named}" if len(workflows) == 1 else f"workflows {named}{more}"
    one = workflows[0] if len(workflows) == 1 else "ID"
    return f"{count} left, for they belong to {whose}: run them again with `{retry_words(one)}`"


def _rest(which: DeadFilter, last_id: int) -> str:
    if which.ids is not None:
        return " ".join(str(each) for each in which.ids if each < last_id)
    return f"{words(which)} --before {last_id}"
