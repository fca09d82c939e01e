"""An OpenID provider, asked over HTTP; and what its claims about a user amount to: an actor, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from mainspring.admin.access import LONGEST_NAME
from mainspring.app import Mainspring
from mainspring.config import AccessConfig
from mainspring.errors import InvalidConfig
from mainspring.model.access import AccessRole, Actor

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
)
"""Signatures with a key that is not also ours. "none", and those with a shared secret, are none of them."""
KEPT_FOR = timedelta(hours=1)
ASKED_AGAIN_AFTER = timedelta(minutes=1)
ANSWERS_WITHIN = timedelta(seconds=10)
LARGEST_ANSWER = 1024 * 1024
SCOPE = "openid email profile"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
Claims = Mapping[str, object]


class ProviderAway(Exception):
    """It does not answer, or not as a provider does."""


class Provider:
    """The one that the settings name."""

    def __init__(self, app: Mainspring) -> None:
        self._clock, self._settings = app._clock, app.settings.access
        self._places: dict[str, Any] | None = None
        self._keys: Any = None
        self._read_at = 0.0

    async def authorization_url(self, *, state: str, nonce: str, verifier: str) -> str:
        """Where a browser goes to show who it is."""
        places = await self._known()
        async with self._client() as client:
            url, _ = client.create_authorization_url(
                places["authorization_endpoint"], state=state, nonce=nonce, code_verifier=verifier
            )
            return str(url)

    async def claims(self, code: str, *, verifier: str) -> Claims:
        """The claims about the user that this code stands for; their signature holds."""
        places = await self._known()
        async with self._client() as client:
            try:
                answer = await client.fetch_token(
                    places["token_endpoint"],
                    code=code,
                    code_verifier=verifier,
                    grant_type="authorization_code",
                )
            except Exception as error:
                raise self._refused(error) from error
        token = answer.get("id_token")
        if not isinstance(token, str) or len(token) > LARGEST_ANSWER:
            raise ClaimRefused("id_token: missing")
        return await self._read(token)

    async def _read(self, token: str) -> Claims:
        from joserfc import errors, jwt

        for _ in range(2):
            try:
                read: Claims = jwt.decode(token, await self._key_set(), algorithms=list(ALGORITHMS)).claims
            except errors.InvalidKeyIdError as unknown:
                # It may have changed its keys since we read them.
                if not self._may_ask_again():
                    raise ClaimRefused(
                        "id_token: signed with a key that the provider does not name"
                    ) from unknown
                self._keys = None
            except (errors.JoseError, ValueError) as wrong:
                raise ClaimRefused(f"id_token: {type(wrong).__name__}") from wrong
            else:
                return read
        raise ClaimRefused("id_token: signed with a key that the provider does not name")

    async def _known(self) -> dict[str, Any]:
        if self._places is None or self._now() - self._read_at > KEPT_FOR.total_seconds():
            issuer = self._settings.oidc_issuer
            found = await self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != issuer:
                raise ProviderAway("it calls itself otherwise than access.oidc_issuer does")
            for place in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                _check_place(found.get(place))
            self._places, self._keys, self._read_at = found, None, self._now()
        return self._places

    async def _key_set(self) -> Any:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        if self._keys is None:
            found = await self._get((await self._known())["jwks_uri"])
            try:
                self._keys = KeySet.import_key_set({"keys": found["keys"]})
            except (JoseError, KeyError, TypeError, ValueError) as wrong:
                raise ProviderAway("its keys cannot be read") from wrong
            self._read_at = self._now()
        return self._keys

    async def _get(self, url: str) -> dict[str, Any]:
        import httpx2

        try:
            async with httpx2.AsyncClient(**_manners()) as client, client.stream("GET", url) as answer:
                body = b""
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > LARGEST_ANSWER:
                        raise ProviderAway("its answer is too large")
                if answer.status_code != 200:
                    raise ProviderAway(f"it answered {answer.status_code}")
            return _object(body)
        except httpx2.HTTPError as error:
            raise ProviderAway(type(error).__name__) from error

    def _client(self) -> Any:
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        return AsyncOAuth2Client(
            client_id=self._settings.oidc_client_id,
            client_secret=self._settings.oidc_client_secret or None,
            token_endpoint_auth_method=None if self._settings.oidc_client_secret else "none",
            redirect_uri=self._settings.oidc_redirect_url,
            scope=SCOPE,
            code_challenge_method="S256",
            **_manners(),
        )

    def _refused(self, error: Exception) -> Exception:
        import httpx2
        from authlib.common.errors import AuthlibBaseError

        if isinstance(error, AuthlibBaseError):
            return ClaimRefused(f"code: {error.error or type(error).__name__}")
        return (
            ProviderAway(type(error).__name__) if isinstance(error, httpx2.HTTPError | ValueError) else error
        )

    def _may_ask_again(self) -> bool:
        return self._now() - self._read_at >= ASKED_AGAIN_AFTER.total_seconds()

    def _now(self) -> float:
        return self._clock.monotonic()


class ClaimRefused(Exception):
    """They do not come in, and why: for the record, not for the page."""


class NoRole(ClaimRefused):
    """We know who they are; nothing says what they may do."""


def require_packages() -> None:
    """Raise InvalidConfig, with the extra to install, unless everything that OIDC needs is there."""
    for package in ("authlib", "joserfc", "httpx2"):
        if find_spec(package) is None:
            extra = "the extra: pip install 'mainspring[oidc]'"
            raise InvalidConfig("access.oidc_issuer", f"no {package}", extra)


def actor_of_claims(claims: Claims, settings: AccessConfig, *, nonce: str, now: datetime) -> Actor:
    """The actor that these claims amount to; their signature has been checked."""
    _check_token(claims, settings, nonce, now.timestamp())
    name = _name(claims, settings)
    role = _role(claims, settings)
    if role is None:
        raise NoRole(f"{name}: no value of {settings.oidc_role_claim} is one of those that give a role")
    return Actor(name=name, role=role, via="oidc")


def _check_place(place: object) -> None:
    parts = urlsplit(place if isinstance(place, str) else "")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ProviderAway("one of its endpoints is not at an https address")


def _manners() -> dict[str, Any]:
    # No proxy that a variable names, no redirects: what is asked goes where the settings say.
    within = ANSWERS_WITHIN.total_seconds()
    return {"timeout": within, "follow_redirects": False, "trust_env": False, "verify": _tls()}


@cache
def _tls() -> Any:
    """Certificates are checked. The list of those who may sign them takes long to read: it is read once."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


def _object(body: bytes) -> dict[str, Any]:
    import msgspec

    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as wrong:
        raise ProviderAway("its answer is no JSON object") from wrong


def _check_token(claims: Claims, settings: AccessConfig, nonce: str, now: float) -> None:
    if claims.get("iss") != settings.oidc_issuer:
        raise ClaimRefused("iss: not the provider we asked")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if settings.oidc_client_id not in audiences:
        raise ClaimRefused("aud: not for us")
    if claims.get("azp", settings.oidc_client_id) != settings.oidc_client_id:
        raise ClaimRefused("azp: given to another client")
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
