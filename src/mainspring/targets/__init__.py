"""What a job can do besides calling a Python function: an HTTP call, a program, a message to a broker.

They are declared on the app: `app.http`, `app.shell`, `app.publish`. The names here are what those take;
each is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.targets.brokers.kafka import Kafka
    from mainspring.targets.brokers.nats import Nats
    from mainspring.targets.brokers.rabbitmq import RabbitMQ
    from mainspring.targets.brokers.redis import RedisStream
    from mainspring.targets.shell import ProgramLimits
    from mainspring.targets.task import TargetTask

__all__ = ["Kafka", "Nats", "ProgramLimits", "RabbitMQ", "RedisStream", "TargetTask"]

_HOMES = {
    "Kafka": "brokers.kafka",
    "ProgramLimits": "shell",
    "Nats": "brokers.nats",
    "RabbitMQ": "brokers.rabbitmq",
    "RedisStream": "brokers.redis",
    "TargetTask": "task",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"mainspring.targets.{_HOMES[name]}"), name)
