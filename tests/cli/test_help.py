"""The help of every command, as a terminal of 80 columns shows it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from mainspring.cli.main import cli


def commands(command: click.Command = cli, *path: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(("mainspring", *path)), command
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from commands(each, *path, name)


ALL = dict(commands())
APPLESS = {"mainspring next", "mainspring completion"}
#: They change something.
ORDERS = {
    *(
        "enqueue",
        "jobs cancel",
        "jobs retry",
        "jobs reschedule",
        "jobs edit",
        "dead edit",
        "dead replay",
        "dead purge",
        "events send",
        "top",
    ),
    *("workflows cancel", "workflows pause", "workflows resume", "workflows retry", "workflows fork"),
    *("queues pause", "queues resume", "queues drain", "backfill", "backfills cancel"),
    *(f"schedules {each}" for each in ("create", "edit", "revert", "apply", "pause", "resume")),
    *(f"schedules {each}" for each in ("trigger", "skip", "go-on", "delete")),
    *("tokens create", "tokens revoke", "sessions end", "alerts ack", "alerts test"),
    *("db migrate", "db new-id"),
}
SEVERAL = {
    *(
        "jobs cancel",
        "jobs retry",
        "jobs reschedule",
        "dead replay",
        "dead purge",
        "queues pause",
        "queues resume",
    ),
    *("workflows cancel", "workflows pause", "workflows resume", "workflows retry", "backfills cancel"),
    *("schedules revert", "schedules pause", "schedules resume", "schedules trigger", "schedules delete"),
    *("tokens revoke", "sessions end", "alerts ack"),
}


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_fits_and_no_sentence_is_cut(name: str) -> None:
    command = ALL[name]
    usage, *lines = command.get_help(click.Context(command, info_name=name, terminal_width=80)).splitlines()

    assert max(map(len, [usage, *lines])) <= 80
    assert not [each for each in lines if "..." in each or "…" in each]


def test_it_begins_with_a_sentence_and_every_option_has_one(name: str) -> None:
    command = ALL[name]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]

    assert command.help
    assert command.help.split("\n\n")[0].strip().endswith(".")
    assert [each.name for each in options if not each.help] == []


def test_an_app_is_named_in_the_same_way_everywhere(name: str) -> None:
    command = ALL[name]
    takes = {option for each in command.params for option in each.opts}

    if not isinstance(command, click.Group):
        assert ({"-A", "--app"} <= takes) is (name not in APPLESS)


def test_every_order_can_be_given_under_a_name(name: str) -> None:
    takes = {option for each in ALL[name].params for option in each.opts}

    assert ("--by" in takes) is (name.removeprefix("mainspring ") in ORDERS)


def test_orders_that_are_given_in_bulk_take_several(name: str) -> None:
    several = any(isinstance(each, click.Argument) and each.nargs == -1 for each in ALL[name].params)

    assert several is (name.removeprefix("mainspring ") in SEVERAL or name == "mainspring enqueue")
