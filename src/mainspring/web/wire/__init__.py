"""Between the socket and the routes: bounds, headers, prefixes, the server's protocol."""

from __future__ import annotations
