"""What a setting and a secret must be. A secret that is refused is never shown: only its length."""

from __future__ import annotations

import base64
import binascii
from datetime import timedelta

from mainspring.duration import format_duration
from mainspring.errors import InvalidArgument, InvalidConfig

_LONGEST = timedelta(days=36525)
_PREFIX = "whsec_"
_LEAST, _MOST = 24, 64
_SIGNING = f"{_PREFIX} and the base64 of {_LEAST} to {_MOST} random bytes"
SHORTEST, LONGEST = 16, 1024
"""Characters of a secret that a provider made: usual are 24 and more."""
EMPTY = "nothing"


def check_range(name: str, value: int, least: int, most: int) -> None:
    """A whole number between two others."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidConfig(name, value, f"a whole number from {least} to {most}")


def check_length(
    name: str, value: timedelta, *, least: timedelta = timedelta(), most: timedelta = _LONGEST
) -> None:
    """A length of time between two others."""
    if not isinstance(value, timedelta) or not least <= value <= most:
        shown = format_duration(value) if isinstance(value, timedelta) else value
        raise InvalidConfig(name, shown, f"from {format_duration(least)} to {format_duration(most)}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in choices:
        raise InvalidConfig(name, value, f"one of {', '.join(choices)}")


def check_flag(name: str, value: bool) -> None:
    """True or false, and nothing that is merely taken for one."""
    if not isinstance(value, bool):
        raise InvalidConfig(name, value, "true or false")


def signing_key(secret: object, field: str) -> bytes:
    """The key that a secret of the Standard Webhooks stands for, or InvalidArgument."""
    if not isinstance(secret, str) or not secret.startswith(_PREFIX):
        raise InvalidArgument(field, "something else", _SIGNING)
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArgument(field, "what is not base64", _SIGNING) from None
    if not _LEAST <= len(key) <= _MOST:
        raise InvalidArgument(field, f"{len(key)} bytes", _SIGNING)
    return key


def check_signing(field: str, secret: str) -> None:
    """None, or a secret that webhooks can be signed with."""
    if secret != "":
        try:
            signing_key(secret, field)
        except InvalidArgument as wrong:
            raise InvalidConfig(field, wrong.got, f"{wrong.expected}; leave it out for none") from None


def check_secret(field: str, secret: str) -> None:
    """None, or a secret that is long enough to be one."""
    if secret == "":
        return
    fit = isinstance(secret, str) and secret.isprintable() and secret == secret.strip()
    if not fit or not SHORTEST <= len(secret) <= LONGEST:
        got = f"*** ({len(secret)} characters)" if isinstance(secret, str) else type(secret)
        raise InvalidConfig(
            field, got, f"a secret of {SHORTEST} to {LONGEST} printable characters; leave it out for none"
        )
