"""Options of isolation, the frames between worker and child, and who can be found by a child."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import Isolation, Mainspring
from mainspring.errors import InvalidArgument
from mainspring.model.job import Claim, Failure
from mainspring.worker.children import child_channel
from mainspring.worker.children.child import Launch, crash_failure, function_name
from mainspring.worker.children.child_channel import (
    Ask,
    FrameError,
    HandlerEnded,
    Hello,
    Ready,
    Reply,
    StartRun,
)
from tests.engine import isolated

NOW = datetime(2026, 11, 15, tzinfo=UTC)
CLAIM = Claim(
    job_id=1, worker_id=2, fence=3, task="t", queue="q", payload=b'{"args":[1]}', failures=0,
    max_attempts=3, run_at=NOW, enqueued_at=NOW, slot_at=NOW, crashes=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "size"),
    [("512MB", 512_000_000), ("1.5GB", 1_500_000_000), ("256 MiB", 2**28), ("2GiB", 2**31), (10**9, 10**9)],
)
def test_a_size_is_read_as_people_write_it(given: Any, size: int) -> None:
    assert Isolation(memory=given).memory == size


@pytest.mark.parametrize(
    "given", ["", "512", "512M", "12kB", "-1GB", "1e3GB", 63 * 10**6, True, 1.5, 2**60, "９９MB"]
)
def test_a_size_that_makes_no_sense_is_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^isolate\.memory: expected a size such as"):
        Isolation(memory=given)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"processes": 1}, "isolate.processes"),
        ({"processes": True}, "isolate.processes"),
        ({"runs": 0}, "isolate.runs"),
        ({"grace": "2h"}, "isolate.grace"),
        ({"grace": -1}, "isolate.grace"),
    ],
)
def test_other_options_have_their_bounds(options: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as wrong:
        Isolation(**options)

    assert wrong.value.field == field


def test_a_task_is_isolated_only_if_it_says_so() -> None:
    app = Mainspring()
    plain = app.task(name="plain")(isolated.look)
    asked = app.task(name="asked", isolate=True)(isolated.look)
    capped = app.task(name="capped", isolate=Isolation(memory="1GB"))(isolated.look)

    assert plain.isolation is None
    assert asked.isolation == Isolation()
    assert capped.isolation is not None
    assert (capped.isolation.memory, capped.isolation.grace) == (10**9, timedelta(seconds=2))
    with pytest.raises(InvalidArgument, match=r"task\.isolate"):
        app.task(name="wrong", isolate="yes")(isolated.look)  # type: ignore[call-overload]


FRAMES = [
    StartRun(claim=CLAIM, function="m:f", memory=5),
    Hello(target="shop:app", path=("/x",), database_url="sqlite:///x.db"),
    Reply(number=3, body=b"\x00", failure=Failure(type="E", message="m")),
]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_comes_back_equal(frame: Any) -> None:
    text = child_channel.encode_frame(frame)

    assert child_channel.frame_length(text[: child_channel.HEADER]) == len(text) - child_channel.HEADER
    assert child_channel.decode_for_child(text[child_channel.HEADER :]) == frame


@pytest.mark.parametrize(
    "frame", [Ready(), Ask(number=1, name="x", body=b"y"), HandlerEnded(result=b"1", clean=False)]
)
def test_so_does_a_childs(frame: Any) -> None:
    assert child_channel.decode_for_worker(child_channel.encode_frame(frame)[child_channel.HEADER :]) == frame


def test_frames_are_bounded_on_both_sides() -> None:
    with pytest.raises(FrameError):
        child_channel.encode_frame(Reply(number=1, body=b"x" * (child_channel.LARGEST + 1)))
    with pytest.raises(FrameError):
        child_channel.frame_length(b"\xff\xff\xff\xff")


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"\x80", b"nonsense", child_channel.encode_frame(Ready())[4:]]
)
def test_what_is_no_frame_of_the_worker_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        child_channel.decode_for_child(body)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (3, "its process ended with exit code 3"),
        (-11, "its process was killed by SIGSEGV"),
        (-9, "its process was killed by SIGKILL; the kernel does that when memory runs out"),
        (-63, "its process was killed by signal 63"),
        (None, "its process was lost"),
    ],
)
def test_a_crash_says_what_it_was(status: int | None, message: str) -> None:
    assert crash_failure(status) == Failure(type="ChildCrashed", message=message)


def test_a_function_at_the_top_of_a_module_is_found_and_a_nested_one_is_not() -> None:
    app = Mainspring()

    @app.task(isolate=True)
    def nested() -> None: ...

    top = app.task(name="top", isolate=True)(isolated.look)
    by_name = Launch(command=(), hello=Hello())
    by_target = Launch(command=(), hello=Hello(target="shop:app"))

    assert function_name(top) == "tests.engine.isolated:look"
    by_name.check(top)
    by_target.check(nested)
    with pytest.raises(InvalidArgument, match=r"^task\.isolate: expected a function at the top of a module"):
        by_name.check(nested)


def test_a_function_of_the_main_module_is_not_found_by_another_process() -> None:
    def script() -> None: ...

    script.__module__, script.__qualname__ = "__main__", "script"
    task = Mainspring().task(isolate=True)(script)

    assert function_name(task) is None
