-- Business calendars: named, and a new row for every version. Triggers name both.
CREATE TABLE calendars (
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (name, version)
) STRICT;
