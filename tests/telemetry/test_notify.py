"""A real worker under a service manager's eyes: READY, WATCHDOG while it makes progress, STOPPING."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes import PATIENCE, until

APP = """
from __future__ import annotations
import time
from pathlib import Path
from mainspring import Mainspring

app = Mainspring("sqlite:///mainspring.db")

@app.task
async def block() -> None:
    Path("blocked").touch()
    while Path("blocked").exists():  # the event loop is ours, and nobody else's
        time.sleep(0.01)
"""
WATCHDOG = 1.5


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Callable[[], list[str]]]:
    """Its socket; answers what was said since it was last asked."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hearing:
        hearing.bind(str(tmp_path / "notify"))
        hearing.setblocking(False)

        def heard() -> list[str]:
            said = []
            while True:
                try:
                    said += hearing.recv(4096).decode().splitlines()
                except BlockingIOError:
                    return said

        yield heard


def test_the_watchdog_hears_no_word_while_a_handler_holds_everything_up(
    manager: Callable[[], list[str]], tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APP)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = {
        **os.environ,
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": str(int(WATCHDOG * 1_000_000)),
        "MAINSPRING_METRICS_STUCK_AFTER": "1s",
    }
    command = [sys.executable, "-m", "mainspring"]
    serving = subprocess.Popen(
        [*command, "dev", "app.py", "--metrics-port", str(port)],
        cwd=tmp_path,
        env=environ,
        stderr=subprocess.DEVNULL,
    )
    said: list[str] = []

    def hears(word: str) -> bool:
        said.extend(manager())
        return word in said

    try:
        until(lambda: hears("READY=1"), "READY")
        until(lambda: hears("WATCHDOG=1"), "a word to the watchdog")
        assert get(port, "/healthz") == 200
        until(lambda: get(port, "/readyz") == 200, "the store to have been asked")
        subprocess.run(
            [*command, "enqueue", "-A", "app.py", "block"], cwd=tmp_path, check=True, capture_output=True
        )
        until((tmp_path / "blocked").exists, "the handler")
        until(lambda: get(port, "/healthz") == 503, "the probe to say so")
        manager()
        # Twice the watchdog's time: the manager would have ended it.
        quiet = time.monotonic() + 2 * WATCHDOG
        said.clear()
        until(lambda: hears("") or time.monotonic() > quiet, "a while")
        assert "WATCHDOG=1" not in said
        assert any(word.startswith("STATUS=stuck: ") for word in said), "but it says why"
        (tmp_path / "blocked").unlink()
        until(lambda: hears("WATCHDOG=1"), "the watchdog to hear again")
        until(lambda: get(port, "/healthz") == 200, "the probe to say so")
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(PATIENCE) == 0
        assert hears("STOPPING=1")
    finally:
        serving.kill()
        serving.wait()


def get(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
