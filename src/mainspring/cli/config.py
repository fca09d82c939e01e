"""`config`: which settings hold, and where each comes from."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import click

from mainspring.cli.options import app_option, json_option, settings_options
from mainspring.cli.output import document, table
from mainspring.cli.session import Access
from mainspring.config import Settings, masked_target, masked_url
from mainspring.duration import format_duration


@click.group()
def config() -> None:
    """Show the settings."""


@config.command()
@app_option(text="Read this app's settings too: module:attr or file.py.")
@settings_options
@json_option
def show(access: Access, as_json: bool) -> None:
    """Show every setting and where it comes from.

    Secrets are masked.
    """
    loaded = access.load()
    values, origins = _values(loaded.settings), loaded._origins
    if as_json:
        document({key: {"value": value, "origin": origins[key]} for key, value in values.items()})
    else:
        rows = [(key, _shown(value), origins[key]) for key, value in values.items()]
        table(["SETTING", "VALUE", "ORIGIN"], rows, none="no settings")


def _values(settings: Settings) -> dict[str, object]:
    found: dict[str, object] = {}
    for section in fields(settings):
        part = getattr(settings, section.name)
        for each in fields(part):
            found[f"{section.name}.{each.name}"] = _plain(getattr(part, each.name))
    found["database.url"] = masked_url(settings.database.url)
    found["alerts.to"] = [masked_target(each) for each in settings.alerts.to]
    found["alerts.ping_url"] = masked_target(settings.alerts.ping_url) if settings.alerts.ping_url else ""
    for secret in ("access.oidc_client_secret", "alerts.secret"):
        found[secret] = "***" if found[secret] else ""
    return found


def _plain(value: object) -> object:
    match value:
        case timedelta():
            return format_duration(value)
        case tuple():
            return list(value)
        case _:
            return value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
