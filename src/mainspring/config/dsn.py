"""What may follow the question mark of a PostgreSQL URL; anything else is a slip that would show up late."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl

from mainspring.config.pooling import OWN

# fmt: off
_CONNECTION = frozenset({
    "host", "port", "user", "database", "dbname", "password", "passfile", "sslmode", "sslcert", "sslkey",
    "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation", "ssl_min_protocol_version",
    "ssl_max_protocol_version", "target_session_attrs", "krbsrvname", "gsslib", "service", "servicefile",
})
"""Those that the driver reads."""
_SESSION = frozenset({
    "application_name", "client_connection_check_interval", "idle_in_transaction_session_timeout",
    "idle_session_timeout", "jit", "lock_timeout", "options", "role", "search_path", "statement_timeout",
    "tcp_keepalives_count", "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_user_timeout", "timezone",
    "work_mem",
})
"""Those that are passed on to the server, which refuses a connection over one that it does not know."""
# fmt: on


def unknown_options(query: str) -> Iterator[str]:
    """Options of a URL that mean nothing here. Names with a dot are an extension's or the user's own."""
    for name, _ in parse_qsl(query, keep_blank_values=True):
        if name not in OWN and name.lower() not in _CONNECTION | _SESSION and "." not in name:
            yield name
