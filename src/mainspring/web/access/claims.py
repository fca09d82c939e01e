"""What an OpenID provider says of somebody, judged: is it for us, is it fresh, and what may they do?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from mainspring.admin.access import LONGEST_NAME
from mainspring.config import AccessConfig
from mainspring.model.access import AccessRole, Actor

Claims = Mapping[str, object]


class ClaimRefused(Exception):
    """They do not come in, and why: for the record, not for the page."""


class NoRole(ClaimRefused):
    """We know who they are; nothing says what they may do."""


def judged(claims: Claims, settings: AccessConfig, *, nonce: str, now: datetime) -> Actor:
    """The actor that these claims, whose signature has been checked, make of somebody."""
    _check_token(claims, settings, nonce, now.timestamp())
    name = _name(claims, settings)
    role = _role(claims, settings)
    if role is None:
        raise NoRole(f"{name}: no value of {settings.oidc_role_claim} is one of those that give a role")
    return Actor(name=name, role=role, via="oidc")


def _check_token(claims: Claims, settings: AccessConfig, nonce: str, now: float) -> None:
    if claims.get("iss") != settings.oidc_issuer:
        raise ClaimRefused("iss: not the provider we asked")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if settings.oidc_client_id not in audiences:
        raise ClaimRefused("aud: not for us")
    if claims.get("azp", settings.oidc_client_id) != settings.oidc_client_id:
        raise ClaimRefused("azp: given to somebody else")
    if claims.get("nonce") != nonce:
        raise ClaimRefused("nonce: not the answer to what we asked")
    if _moment(claims, "exp") <= now:
        raise ClaimRefused("exp: it has ended")
    if "nbf" in claims and _moment(claims, "nbf") > now:
        raise ClaimRefused("nbf: it has not begun")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise ClaimRefused("sub: missing")


def _moment(claims: Claims, name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ClaimRefused(f"{name}: expected a number")
    return float(value)


def _name(claims: Claims, settings: AccessConfig) -> str:
    """An address that the provider has verified; where none must be, the provider's own name for them."""
    email = claims.get("email")
    verified = isinstance(email, str) and claims.get("email_verified") is True
    if settings.oidc_domains:
        # All behind the last @, letter by letter: neither a longer domain nor one inside it.
        domain = str(email).rpartition("@")[2].lower() if verified else None
        if domain not in {each.lower() for each in settings.oidc_domains}:
            raise ClaimRefused("email: of none of the domains that may come in, or not verified")
    name = str(email) if verified else str(claims["sub"])
    if not name.isprintable() or len(name) > LONGEST_NAME:
        raise ClaimRefused("name: expected one line")
    return name


def _role(claims: Claims, settings: AccessConfig) -> AccessRole | None:
    value: object = claims
    for part in settings.oidc_role_claim.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    values = set(map(str, value)) if isinstance(value, list) else {value} if isinstance(value, str) else set()
    for role, named in (
        (AccessRole.ADMIN, settings.oidc_admins),
        (AccessRole.OPERATOR, settings.oidc_operators),
        (AccessRole.VIEWER, settings.oidc_viewers),
    ):
        if values & set(named):
            return role
    return None
