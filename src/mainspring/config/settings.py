"""What can be set, and what each setting may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from mainspring.config.alerts import AlertsConfig
from mainspring.config.checks import check_choice as _check_choice
from mainspring.config.checks import check_length as _check_length
from mainspring.config.checks import check_range as _check_range
from mainspring.config.checks import check_secret
from mainspring.config.url import masked_url, normal_url
from mainspring.duration import format_duration
from mainspring.errors import InvalidConfig

_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
CAPTURE_CTX, CAPTURE_ALL, CAPTURE_NONE = CAPTURES = ("ctx", "all", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseConfig:
    """Where the store is."""

    url: str = "sqlite:///mainspring.db"

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", normal_url(self.url))

    def __repr__(self) -> str:
        return f"DatabaseConfig(url={masked_url(self.url)!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """How one worker process takes and runs jobs."""

    queues: tuple[str, ...] = ("default",)
    """In the order in which they are served; with weights (mail=3, reports=1), by chance in proportion."""
    concurrency: int = 32
    """Jobs that run at once."""
    threads: int = 16
    """Those of them that may be plain functions."""
    children: int = 4
    """Those of them that may run in child processes."""
    lease: timedelta = 15 * _SECOND
    """Lease duration: how long the process counts as alive without a heartbeat."""
    heartbeat: timedelta = 5 * _SECOND
    poll: timedelta = _SECOND
    """How long to wait for a hint before looking anyway."""
    shutdown_timeout: timedelta = 30 * _SECOND
    """How long jobs may go on after a stop was asked for."""
    name: str = ""
    """The name of this process for people; empty lets the worker choose. It identifies nothing."""
    capture_logs: str = CAPTURE_CTX
    """Which log lines are kept with their run: those of `ctx.log`, all of the handler's context, or none."""
    log_limit: int = 64 * 1024
    """Bytes of log kept of one run: its beginning and its end."""
    shell: bool = False
    """Whether it starts programs for tasks declared with `app.shell`."""

    @property
    def queue_names(self) -> tuple[str, ...]:
        """The queues, without their weights."""
        return tuple(each.partition("=")[0] for each in self.queues)

    @property
    def queue_weights(self) -> tuple[int, ...] | None:
        """How often each comes first, where any has a weight; None where their order counts."""
        if not any("=" in each for each in self.queues):
            return None
        return tuple(int(each.partition("=")[2] or 1) for each in self.queues)

    def __post_init__(self) -> None:
        _check_queues(self.queues)
        _check_range("worker.concurrency", self.concurrency, 1, 10_000)
        _check_range("worker.threads", self.threads, 1, 1_000)
        _check_range("worker.children", self.children, 1, 1_000)
        _check_length("worker.lease", self.lease, least=_SECOND, most=_DAY)
        _check_length("worker.heartbeat", self.heartbeat, least=_SECOND / 10)
        _check_length("worker.poll", self.poll, least=_SECOND / 100, most=3600 * _SECOND)
        _check_length("worker.shutdown_timeout", self.shutdown_timeout, most=_DAY)
        if not isinstance(self.shell, bool):
            raise InvalidConfig("worker.shell", self.shell, "true or false")
        if self.heartbeat * 3 > self.lease:
            # One lost beat must not lose the lease.
            most = f"at most a third of worker.lease ({format_duration(self.lease)})"
            raise InvalidConfig("worker.heartbeat", format_duration(self.heartbeat), most)
        if len(self.name) > 100 or not self.name.isprintable():
            raise InvalidConfig("worker.name", self.name, "at most 100 printable characters")
        _check_choice("worker.capture_logs", self.capture_logs, CAPTURES)
        _check_range("worker.log_limit", self.log_limit, 1024, 1024 * 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """How a scheduler turns slots into jobs."""

    poll: timedelta = _SECOND
    """The longest it sleeps when nothing is due."""
    chunk: int = 2000
    """Schedules fired in one transaction."""
    breaker: int = 1000
    """The circuit breaker: a schedule that catches up every missed slot, with no `catch_up` of its own, and
    has so many live jobs gets no more of them."""

    def __post_init__(self) -> None:
        _check_length("scheduler.poll", self.poll, least=_SECOND / 100, most=3600 * _SECOND)
        _check_range("scheduler.chunk", self.chunk, 1, 100_000)
        _check_range("scheduler.breaker", self.breaker, 1, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConfig:
    """How long history is kept. Dead letters are kept for ever."""

    history: timedelta = 30 * _DAY
    results: timedelta = timedelta()
    """Results are dropped from history after this; zero keeps them as long as their runs."""

    def __post_init__(self) -> None:
        _check_length("retention.history", self.history, least=_DAY)
        if self.results:
            _check_length("retention.results", self.results, least=_DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsConfig:
    """What handlers may return."""

    max_bytes: int = 64 * 1024
    """As JSON. A run that returns more has failed."""

    def __post_init__(self) -> None:
        _check_range("results.max_bytes", self.max_bytes, 1, 16 * 1024 * 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What the command line writes to stderr."""

    level: str = "info"
    format: str = "text"
    configure: bool = True
    """Whether the command line sets up logging at all; no leaves it to the app."""

    def __post_init__(self) -> None:
        # INFO is how the standard library spells it.
        object.__setattr__(self, "level", self.level.lower())
        _check_choice("log.level", self.level, LEVELS)
        _check_choice("log.format", self.format, FORMATS)
        if not isinstance(self.configure, bool):
            raise InvalidConfig("log.configure", self.configure, "true or false")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """Metrics and probes of a process, over HTTP."""

    host: str = "127.0.0.1"
    port: int = 0
    """Where `/metrics`, `/healthz` and `/readyz` are served; 0 serves nothing."""
    every: timedelta = 15 * _SECOND
    """The store is asked for its figures at most this often."""
    labels: int = 200
    """Tasks, and queues, that have a series of their own; others count as `other`."""
    stuck_after: timedelta = 30 * _SECOND
    """A loop that is so late for its next pass makes the process unhealthy."""

    def __post_init__(self) -> None:
        if not self.host or len(self.host) > 255 or not self.host.isprintable() or " " in self.host:
            raise InvalidConfig("metrics.host", self.host, "a host name or an address")
        _check_range("metrics.port", self.port, 0, 65535)
        _check_length("metrics.every", self.every, least=_SECOND, most=3600 * _SECOND)
        _check_range("metrics.labels", self.labels, 1, 10_000)
        _check_length("metrics.stuck_after", self.stuck_after, least=_SECOND, most=_DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesConfig:
    """Spans by OpenTelemetry."""

    enabled: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.enabled, bool):
            raise InvalidConfig("traces.enabled", self.enabled, "true or false")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    """Who may sign in, and for how long."""

    session_idle: timedelta = 3600 * _SECOND
    """How long a browser stays signed in without a request."""
    session_longest: timedelta = _DAY
    """How long it stays signed in at all."""
    oidc_issuer: str = ""
    """The OpenID provider's address, as its tokens say it; empty for none."""
    oidc_client_id: str = ""
    oidc_client_secret: str = ""
    oidc_redirect_url: str = ""
    """Where the provider sends browsers back to: https://jobs.example/login/oidc/back."""
    oidc_domains: tuple[str, ...] = ()
    """The domains of mail addresses that may sign in; empty for all users with a role."""
    oidc_role_claim: str = "groups"
    """The claim of a token that names its roles."""
    oidc_viewers: tuple[str, ...] = ()
    """Values of that claim that make a viewer, and likewise below. A user with none of them may not sign
    in."""
    oidc_operators: tuple[str, ...] = ()
    oidc_admins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_length("access.session_idle", self.session_idle, least=60 * _SECOND)
        _check_length("access.session_longest", self.session_longest, least=60 * _SECOND, most=90 * _DAY)
        check_secret("access.oidc_client_secret", self.oidc_client_secret)
        if self.oidc_issuer:
            _check_web_address("access.oidc_issuer", self.oidc_issuer)
            _check_web_address("access.oidc_redirect_url", self.oidc_redirect_url)
            if not self.oidc_client_id:
                raise InvalidConfig("access.oidc_client_id", "", "the id that the provider knows us by")

    def __repr__(self) -> str:
        # Whatever a traceback shows, not the client's secret.
        return f"AccessConfig(oidc_issuer={self.oidc_issuer!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyConfig:
    """What is hidden everywhere."""

    redact: tuple[str, ...] = ()
    """Names of keys whose values are hidden, besides the usual ones: password, token, …"""

    def __post_init__(self) -> None:
        if not all(isinstance(each, str) and each.strip() and len(each) <= 100 for each in self.redact):
            raise InvalidConfig("privacy.redact", self.redact, "names of keys, of at most 100 characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The HTTP server: the API and the dashboard."""

    host: str = "127.0.0.1"
    """The address it listens at; an address other than this machine's own needs a way to sign in."""
    port: int = 8383
    """0 takes a free one."""
    public_url: str = ""
    """The address in the browser, if that is not host and port: https://jobs.example/ops."""
    max_body: int = 256 * 1024
    """Bytes of a request's body; enqueuing in bulk may have more."""
    trusted_proxies: tuple[str, ...] = ()
    """Proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names that it answers; empty for any."""
    tls_cert: str = ""
    """A file with the certificate chain; with tls_key or not at all."""
    tls_key: str = ""

    def __post_init__(self) -> None:
        if not self.host or not self.host.isprintable() or " " in self.host or len(self.host) > 253:
            raise InvalidConfig("server.host", self.host, "an address or a host name")
        _check_range("server.port", self.port, 0, 65_535)
        _check_range("server.max_body", self.max_body, 1024, 64 * 1024 * 1024)
        if self.public_url:
            _check_address("server.public_url", self.public_url)
        if "*" in self.allowed_hosts:
            raise InvalidConfig("server.allowed_hosts", "*", "names; left out, it answers to any")
        if bool(self.tls_cert) != bool(self.tls_key):
            missing = "server.tls_key" if self.tls_cert else "server.tls_cert"
            raise InvalidConfig(missing, "", "a file: a certificate and its key go together")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set; the field names are the sections of the file."""

    database: DatabaseConfig = field(default_factory=DatabaseConfig)
    worker: WorkerConfig = field(default_factory=WorkerConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    results: ResultsConfig = field(default_factory=ResultsConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    log: LogConfig = field(default_factory=LogConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    traces: TracesConfig = field(default_factory=TracesConfig)
    access: AccessConfig = field(default_factory=AccessConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    alerts: AlertsConfig = field(default_factory=AlertsConfig)
    server: ServerConfig = field(default_factory=ServerConfig)


def _check_address(name: str, value: str) -> None:
    parts = urlsplit(value) if value.isascii() and value.isprintable() and " " not in value else None
    fit = parts is not None and parts.scheme in ("http", "https") and parts.hostname
    if parts is None or not fit or parts.username or parts.query or parts.fragment:
        raise InvalidConfig(name, value, "an http or https address, without a user, a query or a fragment")


def _check_web_address(name: str, value: str) -> None:
    parts = urlsplit(value) if value.isascii() and value.isprintable() and " " not in value else None
    safe = parts is not None and (
        parts.scheme == "https"
        or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost"))
    )
    if parts is None or not safe or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise InvalidConfig(name, value, "an https address, without a user, a query or a fragment")


def _check_queues(queues: tuple[str, ...]) -> None:
    fit = isinstance(queues, tuple) and all(
        isinstance(each, str) and each.split() == [each] and each.isprintable() for each in queues
    )
    names = [each.partition("=")[0] for each in queues] if fit else []
    if not fit or not queues or len(set(names)) < len(queues) or not all(names):
        raise InvalidConfig("worker.queues", queues, "one or more queue names, each once")
    for each in queues:
        _, sign, weight = each.partition("=")
        if sign and not (weight.isascii() and weight.isdigit() and 1 <= int(weight) <= 1000):
            raise InvalidConfig(
                "worker.queues", each, "a name, or a name and a weight from 1 to 1000: mail=3"
            )
