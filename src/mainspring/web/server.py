"""Serves the API and the dashboard by itself: a socket, and uvicorn on the event loop that is there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

import uvicorn

from mainspring.admin.order import local_actor
from mainspring.app import Mainspring
from mainspring.config import ServerConfig
from mainspring.errors import InvalidConfig
from mainspring.web.app import WebApp, create_app
from mainspring.web.auth.identity import by_token_or_session
from mainspring.web.middleware.protocol import CarefulProtocol
from mainspring.web.middleware.stack import LARGEST_HEADERS

BACKLOG = 256
MOST_CONNECTIONS = 2000
KEPT_ALIVE = 10
GRACE = 5
FIRST = "first"


class Server:
    """One app, served until it is stopped."""

    def __init__(self, app: Mainspring, *, port: int | None = None) -> None:
        """Binds at once, so that a wrong address fails before anything else is done."""
        settings = app.settings.server
        self._socket = _bound(settings, settings.port if port is None else port)
        self.web = create_app(
            app, identify=by_token_or_session(app), hosts=_hosts(settings), largest=settings.max_body
        )
        self._uvicorn = _Uvicorn(_config(self.web, settings))
        self._settings = settings

    @property
    def url(self) -> str:
        """The address that users type."""
        if self._settings.public_url:
            return self._settings.public_url.rstrip("/")
        scheme = "https" if self._settings.tls_cert else "http"
        host, port = self._socket.getsockname()[:2]
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    async def run(self) -> None:
        """Until `stop` is called."""
        try:
            await self._uvicorn.serve(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Take no more requests, end streams, let others end."""
        self.web.state.live.close()
        self._uvicorn.should_exit = True

    def close(self) -> None:
        """Let go of the address, for one that never ran."""
        self._socket.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address. A name other than localhost may be anything."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def first_token(app: Mainspring, *, author: str, insecure: bool) -> str | None:
    """An admin's token, shown once, where no user can sign in yet; None where a user can. At an address that
    other machines can reach, a user must be able to sign in before the server listens."""
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


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the program that runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(web: WebApp, settings: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        web,
        http=CarefulProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEPT_ALIVE,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=LARGEST_HEADERS,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
    )


def _hosts(settings: ServerConfig) -> tuple[str, ...]:
    """The names it answers to; at a loopback address those of this machine, for any page that a browser
    here has open may have its own name lead to us."""
    named = urlsplit(settings.public_url).hostname if settings.public_url else None
    if settings.allowed_hosts:
        return (*settings.allowed_hosts, *([named] if named else ()))
    if is_loopback(settings.host):
        return ("localhost", "127.0.0.1", "[::1]", settings.host, *([named] if named else ()))
    return ()


def _bound(settings: ServerConfig, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        why = f"an address that is free here ({error.strerror or error})"
        raise InvalidConfig("server.port", f"{settings.host}:{port}", why) from None
