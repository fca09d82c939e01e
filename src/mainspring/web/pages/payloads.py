"""What jobs were given and what they made, as it may be shown."""

from __future__ import annotations

from typing import overload

import msgspec

from mainspring.admin.views import call_view
from mainspring.model.job import Failure
from mainspring.model.run import RESULT_GONE
from mainspring.web.desk import Desk
from mainspring.web.privacy import Plain, redaction_of

GONE = "no longer kept"


class Payloads:
    """Without the secrets that an app hides."""

    def __init__(self, desk: Desk) -> None:
        self._hide = redaction_of(desk)

    def value(self, value: object) -> object:
        """Anything that can be JSON."""
        return self._hide.payload(value)

    def written(self, value: object) -> str:
        """As JSON, for a script."""
        return Plain(msgspec.json.encode(self.value(msgspec.to_builtins(value))).decode())

    def text(self, value: str) -> str:
        """A line of a log, a message, a traceback."""
        return self._hide.text(value)

    def call(self, payload: bytes) -> dict[str, object]:
        """The arguments of a job: `args` and `kwargs`, or `payload` for one that another hand wrote."""
        return {name: self.value(value) for name, value in call_view(payload).items()}

    def result(self, value: bytes | None) -> object:
        """What a handler returned."""
        if value is None:
            return None
        return GONE if value == RESULT_GONE else self.value(msgspec.json.decode(value))

    @overload
    def failure(self, value: Failure) -> Failure: ...
    @overload
    def failure(self, value: Failure | None) -> Failure | None: ...
    def failure(self, value: Failure | None) -> Failure | None:
        """An error."""
        if value is None:
            return None
        message, traceback = self.text(value.message), self.text(value.traceback)
        return msgspec.structs.replace(value, message=message, traceback=traceback)

    def shown(self, value: object) -> str:
        """A value of any kind on one line, such as one side of a difference."""
        hidden = self._hide.payload(value)
        if hidden is None:
            return "–"
        return self.text(hidden) if isinstance(hidden, str) else msgspec.json.encode(hidden).decode()
