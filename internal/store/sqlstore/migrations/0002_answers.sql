-- What requests with an Idempotency-Key were answered.
CREATE TABLE answers (
    key         TEXT    NOT NULL PRIMARY KEY,
    fingerprint BLOB    NOT NULL,
    status      INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_old ON answers (created_at, key);
