"""Programs, started for real: what they see, what is kept of them, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import textwrap
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mainspring.errors import InvalidArgument, TargetError, TargetRefused, TargetUnavailable
from mainspring.targets.shell import ProgramLimits, ShellTarget
from mainspring.tasks.context import Context
from tests.engine.kit import until as eventually
from tests.support.processes import PATIENCE, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shell targets need Linux")
Shell = Callable[..., Any]
MARK = "MAINSPRING_TEST_MARK"


def marked(mark: str) -> list[int]:
    """Processes that have this mark in their environment, whatever they call themselves."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A mark for every process of a test; at its end none may be left."""
    name = f"{os.getpid()}-{tmp_path.name}"
    yield name
    assert marked(name) == []


@pytest.fixture
def shell(run: Callable[[Any], Any], context: Callable[..., Context], mark: str) -> Shell:
    """Run a program; answer its result, or what was raised."""

    def ran(argv: list[str], values: dict[str, Any] | None = None, **options: Any) -> Any:
        env = {MARK: mark, **options.pop("env", {})}
        target = ShellTarget("backup", argv, env=env, **options)

        async def go() -> Any:
            try:
                return await target.run(context(task="backup"), values or {})
            except TargetError as raised:
                return raised

        return run(go())

    return ran


def sh(script: str) -> list[str]:
    return ["sh", "-c", textwrap.dedent(script)]


def python(script: str) -> list[str]:
    return [sys.executable, "-S", "-c", textwrap.dedent(script)]


def test_what_it_writes_is_the_result(shell: Shell) -> None:
    assert shell(sh("echo out; echo err >&2")) == {
        "code": 0,
        "stdout": "out\n",
        "stderr": "err\n",
        "truncated": False,
    }


@pytest.mark.parametrize("value", ["; id", "$(id)", "`id`", "a b", "a\nb", "*", "|cat", "'", "ž"])
def test_an_argument_is_one_word_and_nothing_reads_it(shell: Shell, value: str) -> None:
    result = shell(["printf", "%s|", "{word}", "end"], {"word": value})

    assert result["stdout"] == f"{value}|end|"


def test_it_sees_none_of_the_workers_surroundings(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "LD_PRELOAD", "BASH_ENV", "PYTHONPATH"):
        monkeypatch.setenv(name, "/nonexistent-secret")
    monkeypatch.setenv("REGION", "eu")

    result = shell(["env"], env={"COLOUR": "blue"}, pass_env=["REGION", "UNSET_ONE"])

    seen = dict(line.split("=", 1) for line in result["stdout"].splitlines())
    assert "secret" not in result["stdout"]
    assert seen.keys() == {
        "PATH", "LANG", "HOME", "TMPDIR", "PWD", "COLOUR", "REGION", MARK,
        "MAINSPRING_JOB_ID", "MAINSPRING_JOB_ATTEMPT", "MAINSPRING_JOB_TOKEN",
    }  # fmt: skip
    assert (seen["COLOUR"], seen["REGION"], seen["MAINSPRING_JOB_ID"]) == ("blue", "eu", "7")


def test_it_has_a_folder_of_its_own_which_goes_with_it(shell: Shell) -> None:
    result = shell(sh("pwd; mkdir -p deep/er; echo x > deep/er/file; ln -s / root; ls -ld ."))

    folder, listed = result["stdout"].splitlines()
    assert folder.startswith(f"{tempfile.gettempdir()}/mainspring-")
    assert listed.startswith("drwx------")
    assert not Path(folder).exists()


def test_its_standard_input_is_empty_and_it_leads_a_session(shell: Shell) -> None:
    result = shell(python("import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid())"))

    assert result["stdout"] == "'' True\n"


def test_it_cannot_gain_privileges_and_leaves_no_core(shell: Shell) -> None:
    result = shell(sh("grep NoNewPrivs /proc/self/status; ulimit -c"))

    assert result["stdout"].split() == ["NoNewPrivs:", "1", "0"]


def test_it_has_no_descriptor_but_the_first_three(shell: Shell) -> None:
    result = shell(python("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:4])"))

    assert result["stdout"] == "[0, 1, 2, 3]\n"  # the fourth is the listing itself


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("echo broken >&2; exit 3", TargetUnavailable, "sh exited with 3: broken"),
        ("exit 65", TargetRefused, "sh exited with 65"),
        ("kill -9 $$", TargetUnavailable, "sh was ended by SIGKILL"),
        ("kill -SEGV $$", TargetUnavailable, "sh was ended by SIGSEGV"),
    ],
)
def test_how_it_ends_is_told(shell: Shell, script: str, kind: type[TargetError], message: str) -> None:
    raised = shell(sh(script), permanent_codes=[65])

    assert (type(raised), str(raised)) == (kind, message)


def test_a_program_that_is_not_there_is_told(shell: Shell) -> None:
    raised = shell(["no-such-program"])

    assert type(raised) is TargetUnavailable
    assert str(raised).startswith("no-such-program was not started: [Errno 2]")


def test_endless_output_is_cut_and_takes_no_memory(shell: Shell) -> None:
    tracemalloc.start()
    raised = shell(["yes"], timeout="1s", keep=100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert str(raised).startswith("yes did not end within 1 s, and was killed: ")
    assert len(str(raised)) < 500
    assert peak < 5_000_000


def test_the_last_of_a_long_output_is_kept_and_marked(shell: Shell) -> None:
    result = shell(sh("seq 1 200000; echo 'the end'"), keep=20)

    assert result["stdout"].endswith("the end\n")
    assert (len(result["stdout"]), result["truncated"]) == (20, True)


def test_output_that_is_no_text_is_kept_as_such(shell: Shell) -> None:
    result = shell(["printf", r"a\000b\377c"])

    assert result["stdout"] == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"


def test_a_child_that_made_itself_a_daemon_ends_with_its_program(shell: Shell, mark: str) -> None:
    result = shell(sh("(setsid sh -c 'setsid sleep 100000 & echo $!' &) ; sleep 0.2; echo done"))

    pid = int(result["stdout"].split()[0])
    assert not Path(f"/proc/{pid}").exists()
    assert marked(mark) == []


def test_a_program_that_ignores_every_polite_request_is_killed_with_its_children(
    shell: Shell, mark: str
) -> None:
    script = """
        trap '' TERM HUP INT
        setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' &
        while :; do sleep 1; done
    """
    raised = shell(sh(script), timeout="500ms", grace="200ms")

    assert str(raised) == "sh did not end within 0.5 s, and was killed"
    assert marked(mark) == []


def test_a_program_may_tidy_up_when_its_time_is_over(shell: Shell, tmp_path: Path) -> None:
    script = f"trap 'echo tidied > {tmp_path}/note; exit 0' TERM; while :; do sleep 0.05; done"

    raised = shell(sh(script), timeout="500ms", grace="30s")

    assert "did not end within" in str(raised)
    assert (tmp_path / "note").read_text() == "tidied\n"


def test_a_cancelled_run_ends_its_program_before_it_returns(
    run: Callable[[Any], Any], context: Callable[..., Context], mark: str
) -> None:
    target = ShellTarget("backup", sh("setsid sleep 100000 & sleep 100000"), env={MARK: mark}, grace="100ms")

    async def go() -> None:
        running = asyncio.create_task(target.run(context(), {}))
        await eventually(lambda: len(marked(mark)) == 3, PATIENCE)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert marked(mark) == []

    run(go())


def test_a_run_that_is_cancelled_again_and_again_still_ends_its_program(
    run: Callable[[Any], Any], context: Callable[..., Context], mark: str
) -> None:
    script = "trap '' TERM; setsid sleep 100000 & while :; do sleep 1; done"
    target = ShellTarget("backup", sh(script), env={MARK: mark}, grace="500ms")

    async def go() -> None:
        running = asyncio.create_task(target.run(context(), {}))
        await eventually(lambda: len(marked(mark)) == 3, PATIENCE)
        for _ in range(3):
            running.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running
        await eventually(lambda: not marked(mark), PATIENCE)
        await eventually(lambda: len(asyncio.all_tasks()) == 1, PATIENCE)

    run(go())


def test_memory_is_limited(shell: Shell) -> None:
    raised = shell(python("print(len(bytearray(2 ** 30)))"), limits=ProgramLimits(memory=256 * 2**20))

    assert isinstance(raised, TargetUnavailable)
    assert "MemoryError" in str(raised)


def test_files_and_processor_time_are_limited(shell: Shell) -> None:
    too_big = shell(sh("head -c 1000000 /dev/zero > file"), limits=ProgramLimits(file_size=1000))
    too_long = shell(python("while True: pass"), limits=ProgramLimits(cpu=1))

    assert isinstance(too_big, TargetUnavailable)
    assert "SIGKILL" in str(too_long) or "SIGXCPU" in str(too_long)


# Bounded by itself too: a limit that did not work must not take the machine along.
BOMB = """
    import os, time
    deadline = time.monotonic() + 5
    made = 0
    while made < 400 and time.monotonic() < deadline:
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            made += 1
        except OSError as problem:
            print(made, problem.errno, flush=True)
            break
    time.sleep(2)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as another user")
def test_a_fork_bomb_of_a_user_of_its_own_meets_the_kernels_limit(shell: Shell, mark: str) -> None:
    result = shell(
        [
            "/usr/bin/python3" if shutil.which("/usr/bin/python3") else sys.executable,
            "-c",
            textwrap.dedent(BOMB),
        ],
        limits=ProgramLimits(processes=30),
        user="nobody",
    )

    assert isinstance(result, dict), str(result)
    made, error = result["stdout"].split()
    assert int(made) < 30
    assert int(error) == 11  # EAGAIN
    assert marked(mark) == []


def test_a_fork_bomb_that_the_kernel_lets_pass_is_ended_as_a_tree(shell: Shell, mark: str) -> None:
    raised = shell(python(BOMB), limits=ProgramLimits(processes=30), timeout="40s")

    if os.geteuid() == 0:
        assert str(raised) == f"{sys.executable} had more than 30 processes, and was killed"
    assert marked(mark) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as another user")
def test_a_program_can_run_as_another_user(shell: Shell) -> None:
    result = shell(sh("id -un; id -G; echo x > file; stat -c %U ."), user="nobody")

    name, groups, owner = result["stdout"].split("\n")[:3]
    assert (name, owner) == ("nobody", "nobody")
    assert "0" not in groups.split()


def test_a_user_that_is_not_there_is_told(shell: Shell) -> None:
    assert "has no user 'no-such-user'" in str(shell(["true"], user="no-such-user"))


def test_many_at_once_each_have_their_own_output(
    run: Callable[[Any], Any], context: Callable[..., Context], mark: str
) -> None:
    target = ShellTarget("echo", ["echo", "{n}"], env={MARK: mark})

    async def go() -> list[Any]:
        return await asyncio.gather(*(target.run(context(), {"n": n}) for n in range(8)))

    assert [each["stdout"] for each in run(go())] == [f"{n}\n" for n in range(8)]


def test_a_shepherd_that_is_killed_is_told_and_its_program_dies(
    run: Callable[[Any], Any],
    context: Callable[..., Context],
    mark: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # its folder stays behind, for once
    target = ShellTarget("backup", ["sleep", "100000"], env={MARK: mark})

    async def go() -> None:
        running = asyncio.create_task(target.run(context(), {}))
        await eventually(lambda: marked(mark), PATIENCE)
        os.kill(parent_of(*marked(mark)), 9)
        with pytest.raises(TargetUnavailable, match="was killed from outside"):
            await running
        await eventually(lambda: not marked(mark), PATIENCE)

    run(go())


def test_a_killed_shepherd_leaves_no_run_that_waits_for_ever(
    run: Callable[[Any], Any],
    context: Callable[..., Context],
    mark: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # its folder stays behind, for once
    # The daemon outlives a shepherd that was killed, and holds its output open.
    target = ShellTarget("backup", sh("setsid sleep 100000 & exec sleep 100000"), env={MARK: mark})

    async def go() -> None:
        running = asyncio.create_task(target.run(context(), {}))
        await eventually(lambda: len(marked(mark)) == 2, PATIENCE)
        [shepherd] = {parent_of(pid) for pid in marked(mark)} - set(marked(mark))
        os.kill(shepherd, 9)
        with pytest.raises(TargetUnavailable, match="was killed from outside"):
            async with asyncio.timeout(PATIENCE):
                await running

    try:
        run(go())
    finally:
        for pid in marked(mark):
            os.kill(pid, 9)
        until(lambda: not marked(mark), "the daemon to die")


@pytest.mark.parametrize(
    "options",
    [
        {"argv": "ls -l"}, {"env": {"A=B": "x"}}, {"env": {"A": "x\0"}}, {"env": {"A": 1}}, {"env": ["A"]},
        {"pass_env": "PATH"}, {"pass_env": ["LD_PRELOAD"]}, {"pass_env": ["BASH_ENV"]}, {"pass_env": ["A B"]},
        {"timeout": "0s"}, {"grace": "1h"}, {"permanent_codes": [0]}, {"permanent_codes": [256]},
        {"permanent_codes": 65}, {"limits": {"memory": 1}}, {"user": ""}, {"user": 0}, {"keep": 10**6},
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_when_it_is_declared(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"^backup\."):
        ShellTarget("backup", **{"argv": ["ls"], **options})


@pytest.mark.parametrize("wrong", [{"memory": 5}, {"processes": 0}, {"cpu": 1.5}, {"open_files": True}])
def test_a_limit_that_cannot_be_kept_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"^limits\."):
        ProgramLimits(**wrong)
