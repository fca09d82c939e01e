"""Programs as jobs."""

from __future__ import annotations

import pwd
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta

from mainspring.config import variables
from mainspring.declare.context import Context
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument, TargetRefused, TargetUnavailable
from mainspring.targets.argv import Argv
from mainspring.targets.command import Ended, Order, run_program
from mainspring.targets.keep import as_text, valid_keep
from mainspring.targets.limits import Limits
from mainspring.targets.task import Result, slot_words

_PLATFORM: str = sys.platform
_SHORTEST, _LONGEST_GRACE = timedelta(milliseconds=1), timedelta(minutes=5)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# They make one program run another's code, and a worker's surroundings are not always its owner's.
_NEVER_PASSED = re.compile(r"LD_.*|BASH_ENV|ENV|BASH_FUNC.*|PYTHON.*|PERL5.*|NODE_OPTIONS|IFS|GCONV_PATH")
_DEFAULTS = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
_SAID = 400


class ShellTarget:
    """A program, started without a shell, in surroundings of its own."""

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
        limits: Limits | None = None,
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
        if limits is not None and not isinstance(limits, Limits):
            raise InvalidArgument(f"{name}.limits", limits, "Limits(memory=…, processes=…)")
        self._limits = limits or Limits()
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
        """Run it; exit code 0 is a success, anything else is raised as what it means for the job."""
        if _PLATFORM != "linux":
            raise TargetRefused("shell targets need Linux: nowhere else can all processes of one be found")
        uid, gid = self._ids()
        order = Order(
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
            ended = await run_program(order, timeout=self._timeout, keep=self._keep)
        except OSError as problem:
            raise TargetUnavailable(f"{self._argv.program} was not started: {problem}") from problem
        return self._judged(ended)

    def _judged(self, ended: Ended) -> Result:
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

    def _told(self, ended: Ended) -> str:
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
