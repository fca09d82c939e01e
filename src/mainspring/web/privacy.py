"""What is shown, without secrets: every text and every value that this module does not exempt.

It stands at the two ends where answers are made: JSON (every route of the API, and the streams) and pages
(`rendering.py`). What a handler puts into an answer goes through here whatever its name is, so that a
new field is hidden too. All roles are shown the same: who must see what is stored asks the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

import msgspec
from starlette.responses import Response

from mainspring.admin.redact import HIDDEN, NAMES, Redaction, redaction
from mainspring.admin.views import call_view, to_json
from mainspring.model.job import Failure
from mainspring.model.run import RESULT_GONE
from mainspring.tasks.checks import is_name
from mainspring.web.services import Services

EXEMPT: Mapping[str, str] = {
    "next": "a cursor of ours, which has to come back letter for letter",
    "secret": "the token that this request made: it is shown this once",
}
"""Fields whose text is shown whatever it is, and why."""
OURS = frozenset((
    *("items", "runs", "errors", "error", "failure", "failures", "progress", "before", "jobs", "letter"),
    *("slots", "schedule", "schedules", "last", "next", "at", "fires", "differences", "peaks", "window"),
    *("nodes", "node", "edges", "timeline", "attempts", "orders", "lost", "counts", "backfill", "thresholds"),
    *("queues", "tasks", "parents", "leases", "troubles", "findings", "notes", "overdue"),
))  # fmt: skip
"""Fields that hold objects, or lists, of ours. Whatever else has an inside is a user's value: nothing in it
is exempt, and a key that names a secret hides all that it holds."""
_OF_A_BODY = (b"content-length", b"content-type")
GONE = "no longer kept"


class Plain(str):
    """Text that a page shows as it is: a name, what the same request said, or what has been through here."""

    __slots__ = ()


class JsonAnswer(Response):
    """What a handler of the API answers. It has no body before its route has taken the secrets out."""

    media_type = "application/json"

    def __init__(self, view: object, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(None, status, headers)
        self._view = view

    def finished(self, services: Services) -> Response:
        """As it is sent."""
        body = msgspec.json.encode(private(services, self._view))
        answer = Response(body, self.status_code, media_type=self.media_type)
        answer.raw_headers += [each for each in self.raw_headers if each[0] not in _OF_A_BODY]
        return answer


class Public(Response):
    """What says nothing of anything stored, such as the document of the API."""


class Payloads:
    """Without the secrets that an app hides."""

    def __init__(self, services: Services) -> None:
        self._hide = redaction_of(services)

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


def shown_name(text: str) -> str:
    """A name, to be shown as it is; any other text stays what it was."""
    return Plain(text) if is_name(text) else text


def redaction_of(services: Services) -> Redaction:
    """What is hidden in an app."""
    return redaction(services.app.settings.privacy.redact)


def private(services: Services, view: object) -> object:
    """An answer of ours without the secrets in it."""
    hide = redaction_of(services)
    # Whatever it is made of: what is left are objects, lists and what JSON has.
    made = to_json(view)
    if isinstance(made, Mapping):
        return _object(hide, made)
    return _field(hide, "items", made)


def _object(hide: Redaction, view: Mapping[str, Any]) -> dict[str, object]:
    # Keys are fields of ours, or names; what is neither may be any text.
    return {
        name if is_name(name) else hide.key(name): _field(hide, name, value) for name, value in view.items()
    }


def _field(hide: Redaction, name: str, value: object) -> object:
    if isinstance(value, str):
        if name in EXEMPT or (name in NAMES and is_name(value)):
            return value
        return HIDDEN if hide.is_secret(name) else hide.text(value)
    if value is None or isinstance(value, bool | int | float):
        return value  # numbers of ours, such as the token of a lease; users' are inside of something
    if name in OURS:
        if isinstance(value, Mapping):
            return _object(hide, value)
        if isinstance(value, list | tuple):
            return [_field(hide, name, each) for each in value]
    if hide.is_secret(name):
        return HIDDEN
    return hide.payload(value)
