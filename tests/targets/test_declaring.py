"""Targets declared on an app are tasks like any other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring, Retry
from mainspring.config import load
from mainspring.declare.payload import decode
from mainspring.errors import InvalidArgument, InvalidConfig
from mainspring.model.job import Job, JobState
from mainspring.process.serve import serve
from mainspring.targets import RedisStream
from mainspring.targets.extras import needs
from tests.support.http_server import answers, serving

URL = "https://example.com/hook"


@pytest.fixture
def app(tmp_path: Path) -> Mainspring:
    return Mainspring(f"sqlite:///{tmp_path}/jobs.db")


def test_a_target_is_registered_under_its_name_with_its_options(app: Mainspring) -> None:
    task = app.http("notify", URL, retry=Retry(attempts=8), queue="hooks", priority=5)

    job = task.job(event="paid")

    assert app.registry.get("notify") is task
    assert (job.task, job.queue, job.priority, job.max_attempts) == ("notify", "hooks", 5, 8)
    assert decode(job.payload) == ([], {"event": "paid"})


def test_a_name_is_taken_once(app: Mainspring) -> None:
    app.http("notify", URL)

    with pytest.raises(InvalidArgument, match="a name no other task has"):
        app.shell("notify", ["true"])


def test_any_argument_name_fits_into_a_message(app: Mainspring) -> None:
    task = app.publish("orders", RedisStream("redis://localhost", "orders"))

    job = task.job(context=1, self=2, task=3, url=4, _values=5)

    assert decode(job.payload)[1] == {"context": 1, "self": 2, "task": 3, "url": 4, "_values": 5}


def test_arguments_are_checked_before_a_job_is_stored(app: Mainspring) -> None:
    backup = app.shell("backup", ["pg_dump", "{database}"])
    deliver = app.http("deliver")
    ping = app.http("ping", URL, body=b"ping")

    for wrong in (
        lambda: backup.job(),
        lambda: backup.job(database="a", table="b"),
        lambda: backup.job("a"),
        lambda: backup.job(database="--help"),
        lambda: deliver.job(event="paid"),
        lambda: deliver.job(url="http://169.254.169.254/"),
        lambda: ping.job(event="paid"),
        lambda: backup.using(delay="1h").job(database=None),
    ):
        with pytest.raises(InvalidArgument):
            wrong()


def test_a_target_can_be_scheduled_and_its_arguments_are_checked_then(app: Mainspring) -> None:
    deliver = app.http("deliver")

    app.schedule("hourly", deliver, every="1h", kwargs={"url": URL, "event": "tick"})

    with pytest.raises(InvalidArgument, match=r"deliver\.url"):
        app.schedule("daily", deliver, every="1d", kwargs={"url": "ftp://example.com/"})


def test_a_worker_names_shell_tasks_only_if_it_starts_programs(app: Mainspring) -> None:
    app.shell("backup", ["true"])
    app.http("notify", URL)

    assert app.registry.offered(shell=False) == ("notify",)
    assert app.registry.offered(shell=True) == ("backup", "notify")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("No", False), ("false", False)])
def test_the_setting_reads_from_the_environment(text: str, value: bool, tmp_path: Path) -> None:
    settings, _ = load(flags={}, environ={"MAINSPRING_WORKER_SHELL": text}, cwd=tmp_path)

    assert settings.worker.shell is value


def test_the_setting_is_off_and_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    settings, _ = load(flags={}, environ={}, cwd=tmp_path)

    assert settings.worker.shell is False
    with pytest.raises(InvalidConfig, match=r"worker\.shell: expected true or false"):
        load(flags={}, environ={"MAINSPRING_WORKER_SHELL": "perhaps"}, cwd=tmp_path)


def test_a_burst_runs_targets_and_keeps_their_results(app: Mainspring, run: Callable[[Any], Any]) -> None:
    async def go() -> list[Job]:
        async with serving(answers(200, b"hello")) as server, app:
            notify = app.http(
                "notify",
                f"http://127.0.0.1:{server.port}/",
                ports=[server.port],
                allow_private=["127.0.0.0/8"],
            )
            echo = app.shell("echo", ["echo", "{word}"])
            app.configure({"worker.shell": True})
            jobs = [await notify.aenqueue(n=1), await echo.aenqueue(word="hi")]
            await serve(app, scheduler=False, burst=True)
            store = await app.store()
            found = [await store.jobs.get(each.id, at=None) for each in jobs]
            return [each for each in found if each is not None]

    called, echoed = run(go())

    assert (called.state, echoed.state) == (JobState.SUCCEEDED, JobState.SUCCEEDED)
    assert b'"body":"hello"' in (called.result or b"")
    assert b'"stdout":"hi\\n"' in (echoed.result or b"")


def test_without_the_setting_the_job_waits(
    app: Mainspring, run: Callable[[Any], Any], tmp_path: Path
) -> None:
    touched = tmp_path / "touched"
    touch = app.shell("touch", ["touch", str(touched)])

    async def go() -> Job | None:
        async with app:
            handle = await touch.aenqueue()
            await serve(app, scheduler=False, burst=True)
            return await (await app.store()).jobs.get(handle.id, at=None)

    job = run(go())

    assert job is not None
    assert job.state is JobState.READY
    assert not touched.exists()


def test_an_app_without_targets_loads_none_of_them() -> None:
    code = (
        "import sys, mainspring; mainspring.Mainspring()\n"
        "ours = {name for name in sys.modules if name.startswith('mainspring.targets.')}\n"
        "assert ours == {'mainspring.targets.declaring'}, ours\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_declaring_loads_no_client() -> None:
    code = (
        "import sys; from mainspring import Mainspring\n"
        "from mainspring.targets import Kafka, Nats, RabbitMQ, RedisStream\n"
        "app = Mainspring()\n"
        "app.http('a', 'https://example.com/').job(x=1)\n"
        "app.publish('b', RedisStream('redis://h', 's')); app.publish('c', Nats('nats://h', 's'))\n"
        "app.publish('d', RabbitMQ('amqp://h', 's')); app.publish('e', Kafka('h:1', 's'))\n"
        "loaded = {'httpcore2', 'redis', 'nats', 'aio_pika', 'aiokafka'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_client_is_told_with_its_extra() -> None:
    with (
        pytest.raises(InvalidConfig, match=r"the extra: pip install 'mainspring\[kafka\]'"),
        needs("kafka", "aiokafka"),
    ):
        raise ModuleNotFoundError("No module named 'aiokafka'", name="aiokafka.errors")


def test_another_import_that_fails_is_told_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError), needs("kafka", "aiokafka"):
        raise ModuleNotFoundError("No module named 'ours'", name="ours")


def test_names_that_the_package_does_not_have_are_missing() -> None:
    import mainspring.targets

    for name in mainspring.targets.__all__:
        assert getattr(mainspring.targets, name)
    with pytest.raises(AttributeError):
        _ = mainspring.targets.Pulsar  # type: ignore[attr-defined]
