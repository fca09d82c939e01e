"""The ways in which a server of its own knows people. An app that holds our pages may give its own."""

from __future__ import annotations

from mainspring.app import Mainspring
from mainspring.web.access.identity import Identify
from mainspring.web.access.sessions import SessionWay
from mainspring.web.access.tokens import TokenWay


def usual_ways(app: Mainspring) -> tuple[Identify, ...]:
    """By a token in `Authorization`, else by the cookie of a session."""
    return TokenWay(app), SessionWay(app)
