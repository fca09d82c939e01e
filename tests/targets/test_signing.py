"""Signatures, against ones that were made with other tools."""

from __future__ import annotations

import base64
import subprocess

import pytest

from mainspring.errors import InvalidArgument
from mainspring.targets.http import Signer

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def by_openssl(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_")).hex()
    made = subprocess.run(
        ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{key}", "-binary"],
        input=content,
        capture_output=True,
        check=True,
    )
    return base64.b64encode(made.stdout).decode()


def test_the_example_that_receivers_test_themselves_with() -> None:
    headers = dict(
        Signer(SECRET, "secret").headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    )

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize("body", [b"", b"{}", bytes(range(256)), "žluťoučký".encode()])
def test_openssl_signs_the_same(body: bytes) -> None:
    [*_, (_, signature)] = Signer(OTHER, "secret").headers("id-1", 1700000000, body)

    assert signature == f"v1,{by_openssl(OTHER, b'id-1.1700000000.' + body)}"


def test_while_secrets_change_each_signs() -> None:
    [*_, (_, both)] = Signer([SECRET, OTHER], "secret").headers("id", 1, b"x")

    assert both == f"v1,{by_openssl(SECRET, b'id.1.x')} v1,{by_openssl(OTHER, b'id.1.x')}"


def test_without_a_secret_nothing_is_signed() -> None:
    assert Signer((), "secret").headers("id", 1, b"x") == ()


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_****",
        "whsec_c2hvcnQ=",
        b"whsec_x",
        [None],
        [SECRET] * 6,
    ],
)
def test_what_is_no_secret_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument):
        Signer(wrong, "secret")  # type: ignore[arg-type]
