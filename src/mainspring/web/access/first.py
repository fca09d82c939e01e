"""Who can come in at all: the first token, and the refusal to open a door to the world without one."""

from __future__ import annotations

from mainspring.admin.order import local_actor
from mainspring.app import Mainspring
from mainspring.errors import InvalidConfig
from mainspring.web.server import is_loopback

FIRST = "first"


async def first_token(app: Mainspring, *, author: str, insecure: bool) -> str | None:
    """An admin's token, shown once, where nobody could sign in otherwise; None where somebody can. At an
    address that others can reach somebody must be able to before we listen."""
    tokens = app.admin(local_actor(author, via="cli")).tokens
    if app.settings.access.oidc_issuer or any(each.alive for each in await tokens.aall()):
        return None
    host = app.settings.server.host
    if not is_loopback(host) and not insecure:
        expected = (
            "a loopback address, for nobody can sign in yet: "
            "`mainspring tokens create` makes a token, --insecure goes on without"
        )
        raise InvalidConfig("server.host", host, expected)
    made = await tokens.acreate(FIRST, role="admin")
    return made.secret


async def passing_token(app: Mainspring, *, author: str) -> str:
    """An admin's token for one day at the machine where it is shown."""
    tokens = app.admin(local_actor(author, via="cli")).tokens
    made = await tokens.acreate("dev", role="admin", expires="1d")
    return made.secret
