"""PgBouncer in transaction mode before a PostgreSQL server, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from tests.support.brokers import Server
from tests.support.postgres import _unprivileged_user


def found() -> str | None:
    """The program, which Debian keeps where only root looks; None where it is not installed."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


MISSING = "PgBouncer is not installed (tests/support/install-pgbouncer)"


class PgBouncer(Server):
    """One on a free port of 127.0.0.1, with `servers` sessions for each database and many clients."""

    def __init__(
        self, server_url: str, *, servers: int = 4, settings: Mapping[str, str] | None = None
    ) -> None:
        program = found()
        if program is None:
            raise FileNotFoundError(MISSING)
        super().__init__()
        at = urlsplit(server_url)
        self._user = at.username or ""
        (self.folder / "users").write_text(f'"{self._user}" "{unquote(at.password or "")}"\n')
        options = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": str(self.folder / "users"),
            "admin_users": self._user,
            "pool_mode": "transaction",
            "default_pool_size": str(servers),
            "max_client_conn": "1000",
            **(settings or {}),
        }
        lines = [f"{name} = {value}" for name, value in options.items()]
        database = f"* = host={at.hostname} port={at.port}"
        (self.folder / "ini").write_text("\n".join(["[databases]", database, "[pgbouncer]", *lines, ""]))
        self._command = self._as_user([program, "-q", str(self.folder / "ini")])
        self.start(self._command, ready=self.listens)

    @property
    def pid(self) -> int:
        return self._processes[-1].pid

    def restart(self) -> None:
        """SIGKILL, which takes every connection with it but leaves sessions at what they do; and again."""
        process = self._processes.pop()
        process.kill()
        process.wait()
        self.start(self._command, ready=self.listens)

    def url(self, server_url: str, *, listen: bool = False) -> str:
        """The same database through it, in the mode that it needs; `listen` adds the way around it."""
        at = urlsplit(server_url)
        query = "pool=transaction" + (f"&listen={at.hostname}:{at.port}" if listen else "")
        return urlunsplit(at._replace(netloc=f"{self._user}@127.0.0.1:{self.port}", query=query))

    def plain_url(self, server_url: str) -> str:
        """The same, as somebody writes it who does not know that it is there."""
        return urlunsplit(urlsplit(self.url(server_url))._replace(query=""))

    def _as_user(self, command: list[str]) -> list[str]:
        user = _unprivileged_user()
        if user is None:
            return command
        for path in (self.folder, *Path(self.folder).iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid)
        return [*command[:1], "-u", user.pw_name, *command[1:]]
