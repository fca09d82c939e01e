-- Leases of user code. A row stays for ever, released or not, so that its token only ever rises.
CREATE TABLE mainspring.leases (
    name        text        NOT NULL PRIMARY KEY,
    token       bigint      NOT NULL,   -- +1 with every new holder
    holder_id   bigint      NOT NULL,   -- random for each acquisition; 0: released
    holder      text        NOT NULL,   -- for people to read
    expires_at  timestamptz NOT NULL,
    acquired_at timestamptz NOT NULL
);
