-- Business calendars: named, and a new row for every version. Triggers name both.
CREATE TABLE mainspring.calendars (
    name       text NOT NULL,
    version    int NOT NULL,
    definition text NOT NULL,
    PRIMARY KEY (name, version)
);
