-- Who may come in from outside. A token and a session are known by the SHA-256 of their secret, which is kept nowhere.
CREATE TABLE tokens (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    digest       BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    name         TEXT    NOT NULL,
    role         TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    scopes       TEXT    NOT NULL,          -- JSON
    hint         TEXT    NOT NULL,
    author       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;
CREATE TABLE sessions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    digest    BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    name      TEXT    NOT NULL,
    role      TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    scopes    TEXT    NOT NULL,             -- JSON
    token_id  INTEGER,                      -- the token it was opened with, and ends with
    opened_at INTEGER NOT NULL,
    seen_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_token ON sessions (token_id);
CREATE INDEX sessions_opened ON sessions (opened_at);

-- What people and programs ordered. Numbered without gaps; `digest` covers the entry and the digest before it.
CREATE TABLE acts (
    id       INTEGER NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL,
    phase    TEXT    NOT NULL CHECK (phase IN ('ordered', 'done', 'failed', 'refused')),
    act      TEXT    NOT NULL,
    actor    TEXT    NOT NULL,
    role     TEXT    NOT NULL,
    via      TEXT    NOT NULL,
    target   TEXT    NOT NULL,
    details  BLOB    NOT NULL,
    order_id INTEGER,                       -- the entry that ordered what this one tells the end of
    address  TEXT    NOT NULL,
    digest   BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX acts_order ON acts (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX acts_first ON acts (id) WHERE order_id IS NULL;
CREATE INDEX acts_target ON acts (target, id) WHERE order_id IS NULL;
CREATE INDEX acts_actor ON acts (actor, id) WHERE order_id IS NULL;
CREATE INDEX acts_act ON acts (act, id) WHERE order_id IS NULL;
-- The last entry.
CREATE TABLE acts_head (
    one    INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id     INTEGER NOT NULL,
    digest BLOB    NOT NULL
) STRICT;
INSERT INTO acts_head (id, digest) VALUES (0, zeroblob(32));

CREATE TRIGGER acts_stand BEFORE UPDATE ON acts BEGIN
    SELECT RAISE(ABORT, 'acts are on record for good: update of acts is refused');
END;
CREATE TRIGGER acts_stay BEFORE DELETE ON acts BEGIN
    SELECT RAISE(ABORT, 'acts are on record for good: delete of acts is refused');
END;
-- REPLACE would delete the old row without a word to the trigger above.
CREATE TRIGGER acts_once BEFORE INSERT ON acts WHEN EXISTS (SELECT 1 FROM acts WHERE id = new.id) BEGIN
    SELECT RAISE(ABORT, 'acts are on record for good: insert over acts is refused');
END;
CREATE TRIGGER acts_head_rises BEFORE UPDATE ON acts_head WHEN new.id <= old.id BEGIN
    SELECT RAISE(ABORT, 'acts are on record for good: update of acts_head is refused');
END;
CREATE TRIGGER acts_head_stays BEFORE DELETE ON acts_head BEGIN
    SELECT RAISE(ABORT, 'acts are on record for good: delete of acts_head is refused');
END;
CREATE TRIGGER acts_head_once BEFORE INSERT ON acts_head BEGIN
    SELECT RAISE(ABORT, 'acts are on record for good: insert over acts_head is refused');
END;
