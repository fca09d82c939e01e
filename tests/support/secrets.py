"""How secrets are written where people read: what the documents say is hidden in text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from urllib.parse import quote

SHAPES: tuple[Callable[[str], str], ...] = (
    "password={}".format,
    "Authorization: Bearer {}".format,
    "postgresql://ada:{}@db.example/app".format,
    '{{"api_key": "{}"}}'.format,
    "{{'client_secret': '{}'}}".format,
    '{{\\"token\\": \\"{}\\"}}'.format,
    lambda secret: quote(f"password={secret}", safe=""),
    lambda secret: quote(f"amqp://ada:{secret}@mq", safe=""),
    lambda secret: f"Basic {b64encode(f'ada:{secret}'.encode()).decode()}",
    "ms_{}0123456789abcdef".format,
    "eyJhbGciOiJIUzI1NiJ9.{}.abc".format,
    # With something before it: a prefix of Python, a call, another value, the name of a scheme.
    "{{'password': b'{}'}}".format,
    "{{'password': u'{}', 'n': 1}}".format,
    "password=rb'{}'".format,
    "Config(password=SecretStr('{}'))".format,
    "{{'token': pydantic.SecretStr(value='{}')}}".format,
    "Config(password=('{}',))".format,
    "token=<SecretStr '{}'>".format,
    "{{'credentials': {{'user': {{'a': 1}}, 'word': '{}'}}}}".format,
    "'passwords': [b'a', b'{}']".format,
    '"credentials": {{\n  "user": "ada",\n  "word": "{}"\n}}'.format,
    "Cookie: a=1; sid={}".format,
    "Set-Cookie: sid={}; Path=/; HttpOnly".format,
    "Cookie: {}; a=1".format,
    "Authorization: ApiKey {}".format,
    "Authorization: {}".format,
    "proxy-authorization: Hawk {}".format,
    'Authorization: Digest username="x", realm="y", response="{}"'.format,
    "Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature={}".format,
    # However it is set off.
    "password == {}".format,
    "password := {}".format,
    "password => '{}'".format,
    "config['password'] = '{}'".format,
    "password        =        {}".format,
    "password\t:\t\t{}".format,
    'password="""{}"""'.format,
    "password='it''s {}'".format,
    # Beside its name.
    "Key (password)=({}) already exists.".format,
    "Key (tenant, api_key)=(4, {}) already exists.".format,
    "Key (lower((api_key)::text), tenant)=({}, 4) already exists.".format,
    '["X-Api-Key", "{}"]'.format,
    "[(b'x-api-key', b'{}'), (b'host', b'x')]".format,
    "Command '['psql', '--password', '{}', '-h', 'x']' failed".format,
    '{{"name": "DB_PASSWORD", "value": "{}"}}'.format,
    "{{'value': '{}', 'key': 'DB_PASSWORD'}}".format,
    "- name: DB_PASSWORD\n  value: {}".format,
)
ON_ONE_LINE = tuple(shape for shape in SHAPES if shape("").isprintable())
"""Those that a note, a name or a key of ours may have."""
