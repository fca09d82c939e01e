"""The page about targets, and its example, are run."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mainspring.targets import Kafka, Nats, RabbitMQ, RedisStream
from mainspring.targets.declaring import Targets

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/targets.md").read_text(encoding="utf-8")


def run(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(program)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)), "utf-8")
    [command] = re.findall(r"^    mainspring (.*)$", PAGE, re.MULTILINE)

    ran = run(program, tmp_path)
    enqueued = subprocess.run(
        [sys.executable, "-m", "mainspring", *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(r"job \d+ \(notify in default\)\n", enqueued.stdout), enqueued.stderr


@pytest.mark.parametrize("declare", [Targets.http, Targets.shell, Targets.publish])
def test_the_page_names_every_option(declare: object) -> None:
    for name in [*inspect.signature(declare).parameters][2:]:  # type: ignore[arg-type]
        assert re.search(rf"\b{name}\b", PAGE), f"docs/targets.md does not mention {name}"


@pytest.mark.parametrize("broker", [RedisStream, Nats, RabbitMQ, Kafka])
def test_the_page_names_every_broker(broker: type) -> None:
    assert f"`{broker.__name__}(" in PAGE


def test_the_webhook_is_delivered_at_the_second_try(tmp_path: Path) -> None:
    ran = run(ROOT / "examples/webhook.py", tmp_path)

    assert ran.returncode == 0, ran.stderr
    first, second, last = ran.stdout.splitlines()
    assert re.fullmatch(r'try 1 of \w{8}: {"event":"paid","order":42} -> 503', first)
    assert second == first.replace("try 1", "try 2").replace("503", "200")
    assert last == "job 1 (notify in default): succeeded"
