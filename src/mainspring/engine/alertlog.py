"""The log as somebody who is told of alerts."""

from __future__ import annotations

from collections.abc import Callable

from mainspring.model.alert import Message
from mainspring.telemetry import AlertTold, Telemetry


def into_log(telemetry: Telemetry) -> Callable[[Message], None]:
    """Every alert of a message as an event of its own; the sink for logs writes a line of it."""

    def write(message: Message) -> None:
        for part in message.parts:
            telemetry.emit(
                AlertTold(
                    kind=part.kind,
                    rule=part.rule,
                    subject=part.subject,
                    severity=part.severity,
                    sentence=part.sentence,
                    test=message.test,
                )
            )

    return write
