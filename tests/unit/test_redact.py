"""Secrets stay out of what people read, whatever they hide in."""

from __future__ import annotations

import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.admin.redact import CUT, DETAILS, HIDDEN, Redaction, Spelled
from tests.support.secrets import SHAPES

CANARY = "c4n4ry-S3cr3t"


@pytest.mark.parametrize(
    "key",
    [
        "password", "Passwd", "db_password", "DBPASSWORD", "clientSecret", "client-secret", "SECRET_KEY",
        "token", "access_token", "accessToken", "x-api-key", "apiKey", "APIKEY", "Authorization", "Cookie",
        "Set-Cookie", "private_key", "privateKeyPem", "aws_secret_access_key", "credentials", "jwt",
        "stripe_signature", "auth.token", "passphrase",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [CANARY, [CANARY], {"inner": CANARY}, 123456])
def test_the_value_of_a_secret_key_is_hidden(key, value):
    assert Redaction().payload({"a": [{key: value}]}) == {"a": [{key: HIDDEN}]}


@pytest.mark.parametrize(
    "pair",
    [
        ("token_id", 7), ("password_changed_at", "2030-01-01"), ("cookie_name", "sid"), ("max_tokens", 4000),
        ("monkey", "x"), ("pinned", "x"), ("keys", ["a"]), ("password", None), ("token", True),
        ("tokenizer", "bpe"), ("author", "ada"), ("secret_name", "db"),
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(pair):
    key, value = pair
    assert Redaction().payload({key: value}) == {key: value}


def test_names_of_ones_own_are_hidden_too():
    mine = Redaction(["IBAN", "date-of-birth"])

    shown = mine.payload({"iban": CANARY, "dateOfBirth": CANARY, "name": "ada"})

    assert shown == {"iban": HIDDEN, "dateOfBirth": HIDDEN, "name": "ada"}


@pytest.mark.parametrize(
    "line",
    [
        f"password={CANARY} user=ada",
        f"connect postgresql://ada:{CANARY}@db/app failed",
        f"Authorization: Bearer {CANARY}",
        f"sent Bearer {CANARY} upstream",
        f"GET /hook?token={CANARY}&x=1",
        f'{{"api_key": "{CANARY}", "n": 1}}',
        f"{{'client_secret': '{CANARY}'}}",
        f"url=https://h/x?access_token={CANARY}",
        f"Cookie: sid={CANARY}",
        f"password%3D{CANARY}&x=1",
        f"%22password%22%3A%22{CANARY}%22",
        f"amqp%3A%2F%2Fada%3A{CANARY}%40mq",
        f"Authorization%3A%20Bearer%20{CANARY}",
        f'{{\\"password\\": \\"{CANARY}\\"}}',
        f'{{"password": "a\\"{CANARY}"}}',
        f"""{{'pwd': "it's {CANARY}"}}""",
        f'"passwords": ["a", "{CANARY}"]',
        f"postgresql://ada:a/{CANARY}@db/app",
        f"postgresql://ada:{CANARY}",
        f"ms_{CANARY}0123456789abcdef",
        f"eyJhbGciOiJIUzI1NiJ9.{CANARY}.abc",
        f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY.replace('-', '')}\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_in_text_are_hidden(line):
    shown = Redaction().text(line)

    assert CANARY not in shown
    assert CANARY.replace("-", "") not in shown
    assert HIDDEN in shown
    assert CANARY not in str(Redaction().payload({"error": line}))


def test_text_without_secrets_stays_as_it_is():
    line = 'ValueError: expected 3 rows, got 4 at 12:30:01 (id=42, name="ada"); see https://x.example/a?b=c#d'
    assert Redaction().text(line) == line


@pytest.mark.parametrize(
    "line",
    [
        '{"password": "[redacted]", "max_tokens": 4000, "token": null}',
        "password=[redacted] x",
        "http://host:80/a@b, then more",
        "http://[::1]:80/x",
        "http://host:8080",
    ],
)
def test_text_in_which_nothing_is_left_to_hide_stays_too(line):
    assert Redaction().text(line) == line


def test_json_stays_json():
    shown = Redaction().text(json.dumps({"password": "x", "n": 1, "note": 'a "quoted" password=y'}))
    assert json.loads(shown)["password"] == HIDDEN
    assert json.loads(shown)["n"] == 1


def test_what_is_deep_or_much_is_cut():
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]

    assert CUT in json.dumps(Redaction().payload(deep))
    assert len(json.dumps(Redaction().payload({str(n): n for n in range(100_000)}))) < 500_000
    details = Redaction().details({"text": "x" * 100_000})
    assert len(details) <= DETAILS
    json.loads(details)


def test_details_are_json_whatever_they_are_made_of():
    odd = {"lone": "\ud800", "bytes": b"abc", "set": {1}, "nan": float("nan"), "object": object, 3: "x"}
    assert Redaction().details(odd).isascii()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape("…"))
def test_no_shape_of_a_secret_shows_it(shape):
    """As a text, as a key, inside another text, in JSON, and written for an address."""
    for text in (
        shape(CANARY),
        f"ValueError: {shape(CANARY)} was refused",
        f"first line\n  second: {shape(CANARY)}\nthird line",
        json.dumps({"error": shape(CANARY), "n": 1}),
        json.dumps({"error": json.dumps({"inner": shape(CANARY)})}),
        repr({"error": shape(CANARY)}),
        quote(shape(CANARY), safe=""),
        quote_plus(quote(shape(CANARY))),
    ):
        seen = [Redaction().text(text), json.dumps(Redaction().payload({text: 1, "deep": [{text: [text]}]}))]
        assert [each for each in seen if "c4n4ry" in each] == [], text
        assert [HIDDEN in each or quote(HIDDEN) in each for each in seen] == [True, True]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(SHAPES),
    st.text("abcdefXYZ0189-_", min_size=6, max_size=20),
    st.text("ab :\n\"'=(", max_size=6),
    st.text(" ,;\n)}]\"'", max_size=4),
)
def test_nothing_around_a_secret_lets_it_through(shape, secret, before, after):
    line = f"{before}\n{shape(f'{CANARY}{secret}')}{after}"
    assert CANARY not in Redaction().text(line)
    assert CANARY not in json.dumps(Redaction().payload([{line: 1}, line]))


def test_keys_are_texts_too():
    shown = Redaction().payload({f"password={CANARY}1": 1, f"password={CANARY}2": 2, "a" * 400: 3})

    assert list(shown) == ["password=[redacted]", "password=[redacted] (2)", "a" * 200]


def test_what_has_a_label_and_pairs_are_hidden():
    headers = [["X-Api-Key", CANARY], ("Cookie", CANARY), ["Accept", "text/html"], ["token", None]]
    of_env = [
        {"name": "DB_PASSWORD", "value": CANARY},
        {"Value": [CANARY], "Key": "client_secret"},
        {"name": "HOME", "value": "/root"},
        {"name": "max_tokens", "value": 4000},
        {"name": "a token is missing", "value": "x"},
    ]
    argv = ["psql", "--password", CANARY, "--host", "db", "password", "of", "whom"]

    assert Redaction().payload({"headers": headers, "env": of_env, "argv": argv}) == {
        "headers": [["X-Api-Key", HIDDEN], ["Cookie", HIDDEN], ["Accept", "text/html"], ["token", None]],
        "env": [
            {"name": "DB_PASSWORD", "value": HIDDEN},
            {"Value": HIDDEN, "Key": "client_secret"},
            *of_env[2:],
        ],
        "argv": ["psql", "--password", HIDDEN, "--host", "db", "password", "of", "whom"],
    }


def test_what_is_no_json_is_hidden_in_details_too():
    class Settings:
        def __str__(self):
            return f"password='{CANARY}'"

    assert CANARY.encode() not in Redaction().details({"settings": Settings()})


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\n"
        '  File "/srv/app.py", line 3, in fetch\n'
        "    token = sign(\n"
        "            ^^^^^\n"
        '  File "/srv/app.py", line 9, in sign\n'
        "ValueError: the row has 3 columns",
        "credentials = [\nValueError: the row has 3 columns",
        "password: (it's wrong\nValueError: the row has 3 columns",
    ],
)
def test_the_lines_below_an_open_bracket_stay(text):
    assert "ValueError: the row has 3 columns" in Redaction().text(text)


@pytest.mark.parametrize(
    "line",
    [
        "KeyError: 'user'", "the password is wrong", "Authorization failed: 401", "['GET', 'https://x/a']",
        "Key (email)=(ada@example.com) already exists.", "{'name': 'HOME', 'value': '/root'}",
        "a == b != c => d", "def f(a: int = 3) -> b'x'", "GET /a?b=%20c%3Dd&e=f HTTP/1.1", "100%25 of it",
        "it's ada's: 'x'",
    ],
)  # fmt: skip
def test_harmless_text_stays_as_it_is(line):
    assert Redaction().text(line) == line


LONG = ["a=", "a:", "://", '"', "Bearer ", "-----BEGIN PRIVATE KEY-----", "ms_", "eyJ.", "a-", "password="]


@pytest.mark.parametrize("text", [part * (60_000 // len(part)) for part in LONG], ids=LONG)
def test_no_text_takes_long(text):
    began = time.process_time()
    Redaction().text(text)
    assert time.process_time() - began < 2


PARTS = [
    *LONG, *(shape("")[:-1] or "x" for shape in SHAPES),
    "password=(", "password=[", "password={'", 'password="', "password=" + "'" * 3, "password=b'",
    'password=\\"', "password=S(", "password=<", "password =" + " " * 50, "password=\n", "password\\t",
    ")=(", "Key (", "(", "'", "name='token',", "name=token value", "value=(", 'value="', "('token', '",
    "'--token','", "Cookie: a=1; ", 'Authorization: Digest a="', "authorization: a b=", "%3D", "%25",
    "%70assword%3D", " " * 9, "\n", "\\", "a'", 'a"', "token:", ":", "=", "x", "://a:", "://a:b",
    "eyJaaaaaaaa-", "(\n '", '\\"token\\":',
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_a_megabyte_of_any_shape_takes_no_longer_than_it_is_long(part):
    """Sixteen times the text that is looked at, so that work which grows with its square would show."""
    text = part * (2**20 // len(part))
    began = time.process_time()
    Spelled(Redaction().is_secret).without(text)
    Redaction().payload({text: text, "env": {"name": text, "value": text}})
    assert time.process_time() - began < 30  # with work that grows with its square it would be many minutes


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=50)
@given(json_values)
def test_a_secret_is_hidden_wherever_it_stands(value):
    shown = Redaction().details({"outer": [value, {"password": CANARY}, {"note": f"token={CANARY}"}]})
    assert CANARY.encode() not in shown


@settings(max_examples=50)
@given(json_values)
def test_redacting_twice_changes_nothing_more(value):
    once = Redaction().payload(value)
    assert Redaction().payload(once) == once
