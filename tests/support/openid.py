"""A small OpenID provider on 127.0.0.1, with keys of its own; a test says what its next token claims."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "mainspring-tests", "s3cret-of-24-characters"


class OpenIdProvider:
    """Signs with RS256, unless `forge` says otherwise."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.port = 0
        self.now = 0
        self.claims: dict[str, Any] = {}
        """Over what a token says otherwise."""
        self.forge = ""
        self.issuer_told: str | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.keys_read = 0

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer_told or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def keys(self) -> dict[str, Any]:
        self.keys_read += 1
        return {"keys": [self.key.as_dict(private=False)]}

    def authorize(self, query: dict[str, str]) -> str:
        """Everybody who comes is let in at once; answers where they are sent back to."""
        assert query["client_id"] == CLIENT_ID
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """None for a code that is not whose it should be."""
        asked = self.codes.pop(form.get("code", ""), None)
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if asked is None or authorization != f"Basic {expected}":
            return None
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return None
        return {"access_token": "x", "token_type": "Bearer", "id_token": self._id_token(asked["nonce"])}

    def _id_token(self, nonce: str) -> str:
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": "u-1",
            "iat": self.now,
            "exp": self.now + 300,
            "nonce": nonce,
            "email": "ada@corp.example",
            "email_verified": True,
            "groups": ["ops"],
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        match self.forge:
            case "none":
                return f"{_part({'alg': 'none'})}.{_part(claims)}."
            case "hmac":
                signed = f"{_part({'alg': 'HS256', 'kid': 'one'})}.{_part(claims)}"
                public = self.key.as_pem(private=False)
                return f"{signed}.{_bytes(hmac.digest(public, signed.encode(), 'sha256'))}"
            case "other key":
                other = RSAKey.generate_key(2048, {"kid": "one"})
                return jwt.encode({"alg": "RS256", "kid": "one"}, claims, other)
            case "changed":
                head, _, signature = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key).split(".")
                return f"{head}.{_part({**claims, 'groups': ['root']})}.{signature}"
            case _:
                return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)


def _part(value: dict[str, Any]) -> str:
    return _bytes(json.dumps(value).encode())


def _bytes(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    provider = OpenIdProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            match parts.path:
                case "/.well-known/openid-configuration":
                    self._json(200, provider.discovery())
                case "/keys":
                    self._json(200, provider.keys())
                case _:
                    self._json(404, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            answer = provider.token(form, self.headers.get("authorization", ""))
            self._json(200 if answer else 400, answer or {"error": "invalid_grant"})

        def _json(self, status: int, value: dict[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
