"""HTTP calls as jobs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import urlencode

import msgspec

from mainspring.clock import Clock, SystemClock
from mainspring.config.checks import signing_key
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument
from mainspring.targets.address import PORTS, Address, networks, read_url
from mainspring.targets.answer import check_answer
from mainspring.targets.task import Result, needs, slot_words, valid_keep
from mainspring.tasks.context import Context
from mainspring.version import __version__

if TYPE_CHECKING:
    from mainspring.targets.call import Outgoing, Resolver

Method = Literal["GET", "HEAD", "OPTIONS", "DELETE", "PUT", "POST", "PATCH"]
METHODS = get_args(Method)
_WITH_BODY = ("POST", "PUT", "PATCH")
_IDEMPOTENT = ("GET", "HEAD", "OPTIONS", "DELETE", "PUT")
LARGEST_BODY = 1024 * 1024
_SHORTEST, _LONGEST = timedelta(milliseconds=1), timedelta(hours=1)
_encode = msgspec.json.Encoder(order="deterministic").encode
MOST, LARGEST = 50, 8192
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?", re.ASCII)
# How a message is framed, where it goes, and what says which job it is: those are ours.
_OURS = frozenset(
    (
        "connection", "content-length", "expect", "host", "idempotency-key", "keep-alive", "te", "trailer",
        "transfer-encoding", "upgrade", "webhook-id", "webhook-signature", "webhook-timestamp",
    )
)  # fmt: skip
_MOST_SECRETS = 5


class HttpTarget:
    """A call to one URL, or to the one that each job brings."""

    needs_shell = False

    def __init__(
        self,
        name: str,
        url: str | None = None,
        *,
        method: Method = "POST",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        timeout: Duration = "30s",
        secret: str | Sequence[str] = (),
        idempotent: bool | None = None,
        ports: Sequence[int] | None = None,
        allow_private: Sequence[str] = (),
        keep: int = 4096,
        clock: Clock | None = None,
        resolve: Resolver | None = None,
    ) -> None:
        self._name = name
        self._method = _valid_method(method, f"{name}.method")
        self._headers = valid_headers(headers, f"{name}.headers")
        self._body = _valid_body(body, self._method, f"{name}.body")
        self._timeout = duration(timeout, f"{name}.timeout", least=_SHORTEST)
        if self._timeout > _LONGEST:
            raise InvalidArgument(f"{name}.timeout", timeout, "at most 1h")
        self._signer = Signer(secret, f"{name}.secret")
        if idempotent is not None and not isinstance(idempotent, bool):
            raise InvalidArgument(
                f"{name}.idempotent", idempotent, "true or false, or None to go by the method"
            )
        self._harmless = self._method in _IDEMPOTENT if idempotent is None else idempotent
        self._ports = _valid_ports(ports, f"{name}.ports")
        self._allowed = networks(allow_private, f"{name}.allow_private")
        self._keep = valid_keep(keep, f"{name}.keep")
        self._clock = clock or SystemClock()
        self._resolve = resolve
        self._address = None if url is None else self._read(url)

    @property
    def parameters(self) -> tuple[str, ...]:
        return () if self._address else ("url",)

    @property
    def takes_any(self) -> bool:
        return self._body is None

    def check(self, values: Mapping[str, object]) -> None:
        self._filled(values)

    async def run(self, context: Context, values: Mapping[str, object]) -> Result:
        """Make the call; a success is the result, anything else is raised as the error that it means for the
        job."""
        with needs("http", "httpcore2"):
            from mainspring.targets.call import NetworkGuard, call, look_up
        outgoing = self._outgoing(context, values)
        guard = NetworkGuard(outgoing.address, self._allowed, self._resolve or look_up)
        answer = await call(outgoing, guard, timeout=self._timeout, keep=self._keep)
        return check_answer(answer, f"{self._method} {outgoing.address}", now=self._clock.now()).result()

    def _outgoing(self, context: Context, values: Mapping[str, object]) -> Outgoing:
        from mainspring.targets.call import Outgoing

        token = context.token
        address, body = self._filled(values)
        content = () if body is None else (("Content-Length", str(len(body))),)
        headers = [
            ("Host", address.authority),
            *self._headers,
            *content,
            ("Connection", "close"),
            ("Idempotency-Key", token),
            *self._signer.headers(token, int(self._clock.now().timestamp()), body or b""),
        ]
        named = {each.lower() for each, _ in headers}
        defaults = [("User-Agent", f"mainspring/{__version__}"), ("Accept", "*/*")]
        for name, word in slot_words(context).items():
            defaults.append((f"Mainspring-{name.replace('_', '-').title()}", word))
        if body is not None and self._body is None:
            defaults.append(("Content-Type", "application/json"))
        headers += [each for each in defaults if each[0].lower() not in named]
        return Outgoing(
            method=self._method, address=address, headers=headers, body=body or b"", harmless=self._harmless
        )

    def _filled(self, values: Mapping[str, object]) -> tuple[Address, bytes | None]:
        """Where a job with these arguments goes, and with what body."""
        address = self._address or self._read(values.get("url"))
        rest = {name: value for name, value in values.items() if self._address or name != "url"}
        if self._body is not None:
            return address, self._body
        if self._method in _WITH_BODY:
            return address, _encode(rest)
        if not rest:
            return address, None
        sign = "&" if "?" in address.path else "?"
        query = urlencode([(name, self._query_text(name, value)) for name, value in rest.items()])
        return msgspec.structs.replace(address, path=f"{address.path}{sign}{query}"), None

    def _query_text(self, name: str, value: object) -> str:
        match value:
            case bool():
                return str(value).lower()
            case str() | int() | float():
                return str(value)
            case _:
                raise InvalidArgument(
                    f"{self._name}.{name}",
                    type(value),
                    "text, a number, true or false: it goes into the query",
                )

    def _read(self, url: object) -> Address:
        return read_url(url, f"{self._name}.url", ports=self._ports, allowed=self._allowed)


def _valid_method(method: Method, field: str) -> str:
    if method not in METHODS:
        raise InvalidArgument(field, method, f"one of {', '.join(METHODS)}")
    return method


def _valid_body(body: bytes | str | None, method: str, field: str) -> bytes | None:
    if body is None:
        return None
    if method not in _WITH_BODY:
        raise InvalidArgument(field, type(body), f"none: {method} has no body")
    if not isinstance(body, bytes | str):
        raise InvalidArgument(field, type(body), "text or bytes; without it the arguments are sent as JSON")
    data = body.encode() if isinstance(body, str) else body
    if len(data) > LARGEST_BODY:
        raise InvalidArgument(field, f"{len(data)} bytes", f"at most {LARGEST_BODY} bytes")
    return data


def _valid_ports(ports: Sequence[int] | None, field: str) -> tuple[int, ...]:
    if ports is None:
        return PORTS
    fit = isinstance(ports, Sequence) and all(type(port) is int and 0 < port < 65536 for port in ports)
    if not fit or not ports:
        raise InvalidArgument(field, ports, "one or more ports from 1 to 65535")
    return tuple(ports)


def valid_headers(given: object, field: str) -> tuple[tuple[str, str], ...]:
    """Pairs of name and value, or InvalidArgument."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise InvalidArgument(field, given, "a mapping of names to text")
    if len(given) > MOST:
        raise InvalidArgument(field, f"{len(given)} headers", f"at most {MOST}")
    seen: set[str] = set()
    for name, value in given.items():
        _check(name, value, field)
        if name.lower() in seen:
            raise InvalidArgument(field, name, "each name once, in whatever case")
        seen.add(name.lower())
    size = sum(len(name) + len(value) + 4 for name, value in given.items())
    if size > LARGEST:
        raise InvalidArgument(field, f"{size} bytes", f"at most {LARGEST} bytes in all")
    return tuple(given.items())


def _check(name: object, value: object, field: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgument(field, name, "names of letters, digits and !#$%&'*+-.^_`|~")
    if name.lower() in _OURS or name.lower().startswith("proxy-"):
        raise InvalidArgument(
            field, name, "no header that frames, routes or identifies the call: those are set for you"
        )
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        # The value stays out of the message: it may be a secret.
        got = type(value) if not isinstance(value, str) else f"{len(value)} characters"
        raise InvalidArgument(f"{field}[{name}]", got, "visible ASCII, spaces and tabs inside, as text")


class Signer:
    """Signs with each of its secrets: while a secret is replaced, receivers may know the old or the new
    one."""

    def __init__(self, secret: str | Sequence[str], field: str) -> None:
        given: Sequence[object] = (secret,) if isinstance(secret, str) else secret
        if not isinstance(given, list | tuple) or len(given) > _MOST_SECRETS:
            raise InvalidArgument(field, type(given), f"a secret, or a list of at most {_MOST_SECRETS}")
        self._keys = tuple(signing_key(each, field) for each in given)

    def __repr__(self) -> str:
        return f"<Signer with {len(self._keys)} secrets>"

    def headers(self, message_id: str, timestamp: int, body: bytes) -> tuple[tuple[str, str], ...]:
        """Those of one try; none without a secret."""
        if not self._keys:
            return ()
        content = f"{message_id}.{timestamp}.".encode() + body
        signed = [hmac.new(key, content, hashlib.sha256).digest() for key in self._keys]
        return (
            ("webhook-id", message_id),
            ("webhook-timestamp", str(timestamp)),
            ("webhook-signature", " ".join(f"v1,{base64.b64encode(each).decode()}" for each in signed)),
        )
