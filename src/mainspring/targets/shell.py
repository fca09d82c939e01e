"""Programs as jobs: the words of a call, the process that runs it, and its limits."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import re
import signal
import string
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from mainspring.config import variables
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument, TargetRefused, TargetUnavailable
from mainspring.model.value import Value
from mainspring.targets.task import Result, as_text, slot_words, valid_keep
from mainspring.tasks.context import Context
from mainspring.waiting import pause, until

_PLATFORM: str = sys.platform
_SHORTEST, _LONGEST_GRACE = timedelta(milliseconds=1), timedelta(minutes=5)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# They make one program run another's code, and a worker's surroundings are not always its owner's.
_NEVER_PASSED = re.compile(r"LD_.*|BASH_ENV|ENV|BASH_FUNC.*|PYTHON.*|PERL5.*|NODE_OPTIONS|IFS|GCONV_PATH")
_DEFAULTS = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
_SAID = 400
_MOST_WORDS, _LONGEST_WORD = 1000, 100_000
_Part = tuple[str, str | None]
"""Text, and the name of the argument that follows it."""
_SHEPHERD = Path(__file__).with_name("shepherd.py")
_DEAD_WITHIN = timedelta(seconds=15)
"""How long everything may take to be dead, once no more grace is given."""
_READ_WITHIN = timedelta(seconds=5)
_MOMENT = timedelta(milliseconds=1)
_CHUNK = 64 * 1024
_CALM_AFTER = 1024 * 1024
_CALM = timedelta(milliseconds=10)
_RANGES = {
    "memory": (1024 * 1024, 2**50),
    "processes": (1, 100_000),
    "cpu": (1, 10**9),
    "file_size": (0, 2**60),
    "open_files": (3, 2**20),
}


class ShellTarget:
    """A program, started without a shell, with its own environment and folder."""

    needs_shell = True
    takes_any = False

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        timeout: Duration = "1h",
        grace: Duration = "2s",
        permanent_codes: Sequence[int] = (),
        limits: ProgramLimits | None = None,
        user: str | None = None,
        keep: int = 4096,
    ) -> None:
        self._name = name
        self._argv = Argv(argv, f"{name}.argv")
        self._env = _valid_env(env, f"{name}.env")
        self._pass_env = _valid_names(pass_env, f"{name}.pass_env")
        self._timeout = duration(timeout, f"{name}.timeout", least=_SHORTEST)
        self._grace = duration(grace, f"{name}.grace")
        if self._grace > _LONGEST_GRACE:
            raise InvalidArgument(f"{name}.grace", grace, "at most 5m")
        self._permanent = _valid_codes(permanent_codes, f"{name}.permanent_codes")
        if limits is not None and not isinstance(limits, ProgramLimits):
            raise InvalidArgument(f"{name}.limits", limits, "Limits(memory=…, processes=…)")
        self._limits = limits or ProgramLimits()
        if user is not None and (not isinstance(user, str) or not user or "\0" in user):
            raise InvalidArgument(f"{name}.user", user, "the name of a user")
        self._user = user
        self._keep = valid_keep(keep, f"{name}.keep")

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._argv.names

    def check(self, values: Mapping[str, object]) -> None:
        self._argv.filled(values, self._name)

    async def run(self, context: Context, values: Mapping[str, object]) -> Result:
        """Run it; exit code 0 is a success, anything else is raised as the error that it means for the
        job."""
        if _PLATFORM != "linux":
            raise TargetRefused("shell targets need Linux: nowhere else can all processes of one be found")
        uid, gid = self._ids()
        order = _ProgramCall(
            argv=self._argv.filled(values, self._name),
            env={**_DEFAULTS, **variables(self._pass_env), **self._env},
            own={
                "MAINSPRING_JOB_ID": str(context.job_id),
                "MAINSPRING_JOB_ATTEMPT": str(context.attempt),
                "MAINSPRING_JOB_TOKEN": context.token,
                **{f"MAINSPRING_{name.upper()}": word for name, word in slot_words(context).items()},
            },
            limits=self._limits.given(),
            uid=uid,
            gid=gid,
            grace=self._grace,
        )
        try:
            ended = await _run_program(order, timeout=self._timeout, keep=self._keep)
        except OSError as problem:
            raise TargetUnavailable(f"{self._argv.program} was not started: {problem}") from problem
        return self._judged(ended)

    def _judged(self, ended: _ProgramEnd) -> Result:
        if ended.why == "ended" and ended.code == 0:
            return {
                "code": 0,
                "stdout": as_text(ended.stdout),
                "stderr": as_text(ended.stderr),
                "truncated": ended.truncated,
            }
        said = as_text(ended.stderr or ended.stdout).strip()[-_SAID:]
        message = f"{self._argv.program} {self._told(ended)}" + (f": {said}" if said else "")
        if ended.why == "ended" and ended.code in self._permanent:
            raise TargetRefused(message)
        raise TargetUnavailable(message)

    def _told(self, ended: _ProgramEnd) -> str:
        match ended.why:
            case "late":
                return f"did not end within {self._timeout.total_seconds():g} s, and was killed"
            case "processes":
                return f"had more than {self._limits.processes} processes, and was killed"
            case "not started":
                return f"was not started: {ended.problem}"
            case "ended" if ended.code >= 0:
                return f"exited with {ended.code}"
            case "ended":
                return f"was ended by {_signal_name(-ended.code)}"
            case _:
                return "was killed from outside"

    def _ids(self) -> tuple[int | None, int | None]:
        if self._user is None:
            return None, None
        try:
            found = pwd.getpwnam(self._user)
        except KeyError:
            raise TargetUnavailable(f"{self._name}.user: this machine has no user {self._user!r}") from None
        return found.pw_uid, found.pw_gid


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _valid_env(env: Mapping[str, str] | None, field: str) -> dict[str, str]:
    if env is not None and not isinstance(env, Mapping):
        raise InvalidArgument(field, type(env), "a mapping of names to text")
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise InvalidArgument(field, name, "names of letters, digits and _")
        if not isinstance(value, str) or "\0" in value:
            # The value stays out of the message: it may be a secret.
            raise InvalidArgument(f"{field}[{name}]", type(value), "text without NUL characters")
    return dict(env or {})


def _valid_names(names: Sequence[str], field: str) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidArgument(field, names, 'a list of names, such as ["HTTPS_PROXY"]')
    for name in names:
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name) or _NEVER_PASSED.fullmatch(name):
            raise InvalidArgument(field, name, "names of variables that load no code into a program")
    return tuple(names)


def _valid_codes(codes: Sequence[int], field: str) -> frozenset[int]:
    fit = isinstance(codes, Sequence) and all(type(code) is int and 1 <= code <= 255 for code in codes)
    if not fit:
        raise InvalidArgument(field, codes, "exit codes from 1 to 255")
    return frozenset(codes)


class Argv:
    """The words of a program's call, with places for the arguments of a job:
    `["pg_dump", "--file={target}", "--", "{database}"]`.

    A value fills its place and nothing more: no shell reads the words, and a value is never split. The one
    danger left is a value that the program would read as an option.
    """

    def __init__(self, words: Sequence[str], field: str) -> None:
        if isinstance(words, str | bytes) or not isinstance(words, Sequence):
            raise InvalidArgument(field, words, 'a list of words, such as ["rsync", "-a", "{source}"]')
        if not 0 < len(words) <= _MOST_WORDS:
            raise InvalidArgument(field, f"{len(words)} words", f"1 to {_MOST_WORDS} words")
        self._field = field
        self._words = [_parts(word, f"{field}[{index}]") for index, word in enumerate(words)]
        self.program = _program(words[0], self._words[0], field)
        names = [name for parts in self._words for _, name in parts if name is not None]
        self.names = tuple(dict.fromkeys(names))

    def filled(self, values: Mapping[str, object], task: str) -> list[str]:
        """The words of one job."""
        texts = {name: _text(values.get(name), f"{task}.{name}") for name in self.names}
        words: list[str] = []
        for parts in self._words:
            first = parts[0]
            if first[0] == "" and first[1] is not None and "--" not in words:
                _refuse_option(texts[first[1]], f"{task}.{first[1]}")
            words.append("".join(text + ("" if name is None else texts[name]) for text, name in parts))
        return words


def _parts(word: object, field: str) -> list[_Part]:
    if not isinstance(word, str) or "\0" in word or len(word) > _LONGEST_WORD:
        raise InvalidArgument(field, word, "text without NUL characters")
    try:
        found = list(string.Formatter().parse(word))
    except ValueError:
        raise InvalidArgument(field, word, "{name} for an argument, {{ and }} for braces") from None
    for _, name, form, conversion in found:
        if name is not None and (form or conversion or not _is_name(name)):
            raise InvalidArgument(field, word, "{name} with nothing but the name of an argument in it")
    return [(text, name) for text, name, _, _ in found] or [("", None)]


def _is_name(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not name.startswith("_")


def _program(word: str, parts: Sequence[_Part], field: str) -> str:
    if any(name is not None for _, name in parts):
        raise InvalidArgument(f"{field}[0]", word, "a program that no argument can change")
    program = "".join(text for text, _ in parts)
    if not program or ("/" in program and not program.startswith("/")):
        raise InvalidArgument(f"{field}[0]", word, "a program's name, or its path from the root")
    return program


def _text(value: object, field: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidArgument(field, type(value), "text or a number")
    text = str(value)
    if "\0" in text or len(text) > _LONGEST_WORD:
        raise InvalidArgument(field, text, f"at most {_LONGEST_WORD} characters, none of them NUL")
    return text


def _refuse_option(text: str, field: str) -> None:
    if text.startswith("-"):
        raise InvalidArgument(field, text, 'nothing that begins with -, or a "--" before it in argv')


class _ProgramCall(Value, frozen=True, kw_only=True):
    """What to start, and under which conditions."""

    argv: Sequence[str]
    env: Mapping[str, str]
    own: Mapping[str, str]
    """Variables that say which job this is: nothing else may set them."""
    limits: Mapping[str, int]
    uid: int | None
    gid: int | None
    grace: timedelta


class _ProgramEnd(Value, frozen=True, kw_only=True):
    """How a program ended, and the end of its output."""

    why: str
    """ended, stopped, processes (too many of them), not started, or lost (the shepherd itself was killed)."""
    code: int
    """Its exit code; negative for the signal that ended it."""
    problem: str
    stdout: bytes
    stderr: bytes
    truncated: bool


async def _run_program(order: _ProgramCall, *, timeout: timedelta, keep: int) -> _ProgramEnd:  # noqa: ASYNC109 - the program is ended in good order, which a cancellation from outside would not wait for
    """Run it to its end. When its time is up, or we are cancelled, all of its processes are ended first."""
    shepherd = _Shepherd(order)
    stdout, stderr = (_Tail(end, keep) for end in shepherd.output)
    try:
        late = not await shepherd.ends_within(timeout)
    finally:
        # Whatever became of us, see it dead before its job can begin elsewhere. If we are not even given
        # the time for that, it goes on, here or in the shepherd alone.
        await asyncio.shield(asyncio.create_task(_settled(shepherd, [stdout, stderr], order.grace)))
    said = shepherd.report()
    return _ProgramEnd(
        why="late" if late else str(said.get("why", "lost")),
        code=int(str(said.get("code", 0))),
        problem=str(said.get("problem", "")),
        stdout=stdout.kept,
        stderr=stderr.kept,
        truncated=stdout.is_cut or stderr.is_cut,
    )


async def _settled(shepherd: _Shepherd, output: Sequence[_Tail], grace: timedelta) -> None:
    await shepherd.end(grace)
    # If the shepherd was killed, its processes may keep the output open for ever.
    await asyncio.wait([each.reading for each in output], timeout=_READ_WITHIN.total_seconds())
    for each in output:
        each.reading.cancel()
    await asyncio.wait([each.reading for each in output])


class _Shepherd:
    """The process between us and the program.

    Not a process of asyncio: that one is killed when no object refers to it any more, and this one must not
    be, because it ends the others. It has ended when its report has: no other process has that pipe.
    """

    def __init__(self, order: _ProgramCall) -> None:
        self._loop = asyncio.get_running_loop()
        self._said = b""
        self._ended = asyncio.Event()
        with ExitStack() as on_failure, ExitStack() as its_own:

            def pipe() -> tuple[int, int]:
                ends = os.pipe()
                for end in ends:
                    on_failure.callback(os.close, end)
                return ends

            description = its_own.enter_context(os.fdopen(os.memfd_create("order"), "wb"))
            description.write(_written(order))
            description.flush()
            lifeline, self._lifeline = pipe()
            self._report, report = pipe()
            out, stdout = pipe()
            err, stderr = pipe()
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                # Isolated: neither the worker's variables nor its folder say what is imported.
                [sys.executable, "-I", "-S", str(_SHEPHERD), str(description.fileno()), str(report)],
                stdin=lifeline,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(description.fileno(), report),
                start_new_session=True,
                env=variables(["LD_LIBRARY_PATH"]),  # some builds of Python need it to start at all
            )
            on_failure.pop_all()
        for end in (lifeline, report, stdout, stderr):
            os.close(end)
        self.output = (out, err)
        os.set_blocking(self._report, False)
        self._loop.add_reader(self._report, self._hear)

    async def ends_within(self, at_most: timedelta) -> bool:
        """Wait; answer whether it has ended."""
        return await until(self._ended, at_most)

    async def end(self, grace: timedelta) -> None:
        """Close the lifeline, and wait for the end. A process that is left even then cannot be ended by a
        signal."""
        os.close(self._lifeline)
        await until(self._ended, grace + _DEAD_WITHIN)
        self._loop.remove_reader(self._report)
        os.close(self._report)
        if self._ended.is_set():
            while self._process.poll() is None:
                await pause(_MOMENT)

    def _hear(self) -> None:
        more = os.read(self._report, 65536)
        self._said += more
        if not more:
            self._loop.remove_reader(self._report)
            self._ended.set()

    def report(self) -> dict[str, object]:
        """Its report; empty if it was killed."""
        said: dict[str, object] = json.loads(self._said) if self._said else {}
        return said


class _Tail:
    """Reads to the end, and keeps the last of it: that is where a program says what went wrong."""

    def __init__(self, end: int, keep: int) -> None:
        self._keep = keep
        self._total = 0
        self.kept = b""
        self.reading = asyncio.create_task(self._read(end))

    @property
    def is_cut(self) -> bool:
        return self._total > self._keep

    async def _read(self, end: int) -> None:
        stream = asyncio.StreamReader(limit=_CHUNK)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(end, "rb", buffering=0)
        )
        try:
            while chunk := await stream.read(_CHUNK):
                self._total += len(chunk)
                self.kept = (self.kept + chunk)[-self._keep :] if self._keep else b""
                if self._total > _CALM_AFTER:
                    await pause(_CALM)  # a program that never stops writing waits for us, not we for it
        finally:
            transport.close()


def _written(order: _ProgramCall) -> bytes:
    fields = {
        "argv": list(order.argv),
        "env": dict(order.env),
        "own": dict(order.own),
        "limits": dict(order.limits),
        "uid": order.uid,
        "gid": order.gid,
        "grace": order.grace.total_seconds(),
        "parent": os.getpid(),
        "temporary": tempfile.gettempdir(),
    }
    return json.dumps(fields).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLimits:
    """Limits of a program that a job starts; None leaves the worker's own."""

    memory: int | None = None
    """Bytes of address space of each of its processes."""
    processes: int | None = None
    """Processes at once. The kernel holds a user to it, and counts all of that user's; it holds root to
    nothing, so there the whole tree is ended when it grows beyond it. Better: `user`."""
    cpu: int | None = None
    """Seconds of processor time of each of its processes."""
    file_size: int | None = None
    """Bytes of each file that it writes."""
    open_files: int | None = None

    def __post_init__(self) -> None:
        for name, value in self.given().items():
            least, most = _RANGES[name]
            if type(value) is not int or not least <= value <= most:
                raise InvalidArgument(f"limits.{name}", value, f"a whole number from {least} to {most}")

    def given(self) -> dict[str, int]:
        """Those that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}
