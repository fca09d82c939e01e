"""An OpenID provider, asked over HTTP: where its doors are, what it signs with, whom a code stands for."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from mainspring.app import Mainspring
from mainspring.errors import InvalidConfig
from mainspring.web.access.claims import ClaimRefused, Claims

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
        """What the provider says of whoever came back with this code; its signature holds."""
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


def require_packages() -> None:
    """Raise InvalidConfig, with the extra to install, unless everything that OIDC needs is there."""
    for package in ("authlib", "joserfc", "httpx2"):
        if find_spec(package) is None:
            extra = "the extra: pip install 'mainspring[oidc]'"
            raise InvalidConfig("access.oidc_issuer", f"no {package}", extra)


def _check_place(place: object) -> None:
    parts = urlsplit(place if isinstance(place, str) else "")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ProviderAway("one of its doors is not at an https address")


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
