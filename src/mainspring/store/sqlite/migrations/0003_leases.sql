-- Leases of user code. A row stays for ever, released or not, so that its token only ever rises.
CREATE TABLE leases (
    name        TEXT    NOT NULL PRIMARY KEY,
    token       INTEGER NOT NULL,   -- +1 with every new holder
    holder_id   INTEGER NOT NULL,   -- random for each acquisition; 0: released
    holder      TEXT    NOT NULL,   -- for people to read
    expires_at  INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
