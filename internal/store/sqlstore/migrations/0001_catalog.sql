-- The catalog's first schema. The text is SQLite's; other dialects replace the names of types and the words after the
-- closing parentheses. Times are milliseconds since 1970, 0 where there is none. Maps are JSON, '' where empty.

-- Namespaces (kind 1) and tables (kind 2) share one table, because they share their names. Tables have states: 1 live,
-- 2 dropped, 3 deregistered; a namespace's row is always live. A namespace is never renamed, so its path never changes.
CREATE TABLE objects (
    id         INTEGER NOT NULL PRIMARY KEY,
    kind       INTEGER NOT NULL,
    parent     INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    state      INTEGER NOT NULL,
    path       TEXT,             -- namespaces only: the names joined by U+001F, '' for the root
    location   TEXT,             -- tables only: the location and a slash
    properties TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX objects_name ON objects (parent, name) WHERE state = 1;
CREATE INDEX objects_list ON objects (kind, parent, name) WHERE state = 1;
CREATE UNIQUE INDEX objects_path ON objects (path) WHERE kind = 1;
-- A location is claimed by tables that are live or dropped. With the slash at its end, the location next to another one in
-- this order is its ancestor or its descendant if any claimed one is.
CREATE UNIQUE INDEX objects_location ON objects (location) WHERE kind = 2 AND state <> 3;

INSERT INTO objects (id, kind, parent, name, state, path, properties, created_at) VALUES (0, 1, 0, '', 1, '', '', 0);

-- One row a version; the rows of a chain lie side by side, and its head is the last of them above 0. States: 0 pending,
-- 1 committed, 2 pruned, 3 deleted.
CREATE TABLE versions (
    table_id INTEGER NOT NULL,
    branch   TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    state    INTEGER NOT NULL,
    origin   INTEGER NOT NULL,
    txn      TEXT    NOT NULL,
    scheme   INTEGER NOT NULL,
    staged   TEXT    NOT NULL,
    size     INTEGER NOT NULL,
    e_tag    TEXT    NOT NULL,
    digest   BLOB    NOT NULL,
    ts       INTEGER NOT NULL,
    metadata TEXT    NOT NULL,
    PRIMARY KEY (table_id, branch, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX versions_pending ON versions (table_id, txn) WHERE state = 0;

-- States: 0 pending, 1 committed, 2 aborted. entries is a JSON array.
CREATE TABLE transactions (
    id          TEXT    NOT NULL PRIMARY KEY,
    state       INTEGER NOT NULL,
    principal   TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    resolved_at INTEGER NOT NULL,
    context     TEXT    NOT NULL,
    entries     TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    properties  TEXT    NOT NULL
) STRICT;

CREATE INDEX transactions_pending ON transactions (created_at, id) WHERE state = 0;

-- The contents of aborted transactions, by the slot they were meant for.
CREATE TABLE aborted (
    table_id INTEGER NOT NULL,
    branch   TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    digest   BLOB    NOT NULL,
    txn      TEXT    NOT NULL,
    seen     INTEGER NOT NULL, -- 1 where the content may have stood under its final name
    PRIMARY KEY (table_id, branch, version, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    id       INTEGER NOT NULL PRIMARY KEY,
    kind     TEXT    NOT NULL,
    payload  TEXT    NOT NULL,
    run_at   INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    last_err TEXT    NOT NULL
) STRICT;

CREATE INDEX jobs_due ON jobs (run_at, id);
CREATE INDEX jobs_kind ON jobs (kind, id);

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
