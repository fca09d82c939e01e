"""`mainspring WORDS` as a process of its own that need not import anything: forked from one that has.

Starting Python and importing the command line costs most of what a command costs; the suite calls a few
thousand of them. A child has its own folder, environment, stdin, stdout and stderr, and exits for itself.
Only what Python reads before it runs anything (PYTHON… variables) wants a process from the start.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_LENGTH = struct.Struct("!I")


def fits(environment: Mapping[str, str]) -> bool:
    """Whether a fork is as good as a start: Python itself is told nothing else than we were."""
    ours = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "LC_", "LANG"))}
    return ours == {n: v for n, v in environment.items() if n.startswith(("PYTHON", "LC_", "LANG"))}


class Zygote:
    """The process that forks; started when it is first needed, ended with ours."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        atexit.register(self.close)

    def run(
        self, words: Sequence[str], *, cwd: Path, environment: Mapping[str, str], within: float
    ) -> tuple[int, str, str]:
        """Run it to its end; answer its exit code, or minus the signal that ended it, and what it said."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            order = json.dumps([list(words), str(cwd), dict(environment)]).encode()
            self._socket.settimeout(within)
            socket.send_fds(self._socket, [_LENGTH.pack(len(order))], [out.fileno(), err.fileno()])
            self._socket.sendall(order)
            try:
                status = _exactly(self._socket, _LENGTH.size)
            except TimeoutError:
                # What it would still say is nobody's answer any more: the next call starts another one.
                self.close()
                raise
            code = os.waitstatus_to_exitcode(_LENGTH.unpack(status)[0])
            return code, _read(out), _read(err)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()
        # With whomever it forked.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _read(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    return file.read().decode().replace("\r\n", "\n")  # type: ignore[attr-defined]


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError("the process that forks has ended")
        found += part
    return found


_zygotes: list[Zygote] = []


def run(
    words: Sequence[str], *, cwd: Path, environment: Mapping[str, str], within: float
) -> tuple[int, str, str]:
    """With the zygote of this process."""
    if not _zygotes or not _zygotes[-1].alive:
        _zygotes.append(Zygote())
    return _zygotes[-1].run(words, cwd=cwd, environment=environment, within=within)


def _serve(connection: socket.socket) -> None:
    while True:
        head, files, *_ = socket.recv_fds(connection, _LENGTH.size, 2)
        if not head:
            return
        while len(head) < _LENGTH.size:
            head += _exactly(connection, _LENGTH.size - len(head))
        order = json.loads(_exactly(connection, _LENGTH.unpack(head)[0]))
        child = os.fork()
        if child == 0:
            connection.close()
            _become(*order, *files)
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        connection.sendall(_LENGTH.pack(status))


def _become(words: list[str], cwd: str, environment: dict[str, str], out: int, err: int) -> None:
    """Be what `python -m mainspring WORDS` would be; never return."""
    from mainspring.cli.main import main

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.argv = ["mainspring", *words]
    sys.path[0] = cwd
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _preload() -> None:
    """Whatever most commands import, once."""
    import importlib

    for name in (
        "asyncpg",
        "mainspring.cli.main",
        "mainspring.cli.service",
        "mainspring.telemetry.log",
        "mainspring.worker.children.pool",
        "mainspring.process.serve",
        "mainspring.store.postgres.store",
        "mainspring.store.sqlite.store",
        "uvloop",
    ):
        importlib.import_module(name)


if __name__ == "__main__":
    _preload()
    _serve(socket.socket(fileno=int(sys.argv[1])))
