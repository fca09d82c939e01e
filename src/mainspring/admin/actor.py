"""The actor of orders that are given on this machine: by a command, or by a program's own code."""

from __future__ import annotations

import os
import pwd

from mainspring.model.access import AccessRole, Actor


def login_name() -> str:
    """The user as the operating system knows it, whatever the environment says."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run under a number that has no name
        return f"uid {number}"


def local_actor(name: str | None = None, *, via: str) -> Actor:
    """Whoever has the database's password may do everything."""
    return Actor(name=name or login_name(), role=AccessRole.ADMIN, via=via)
