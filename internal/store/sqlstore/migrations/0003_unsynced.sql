-- Manifests that stand under their final names without being known to be on the disk: this table is what keeps them until then.
CREATE TABLE unsynced (
    id       INTEGER NOT NULL PRIMARY KEY,
    table_id INTEGER NOT NULL,
    branch   TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    scheme   INTEGER NOT NULL,
    location TEXT    NOT NULL,
    data     BLOB    NOT NULL
) STRICT;
