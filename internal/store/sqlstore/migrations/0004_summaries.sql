-- What the manifest of a version says in numbers: all -1, and the texts '', in rows that were written before these columns were there. Such a row
-- is also what a binary that does not know them writes.
ALTER TABLE versions ADD COLUMN live_rows      INTEGER NOT NULL DEFAULT -1; -- also -1 where the manifest does not tell
ALTER TABLE versions ADD COLUMN deleted_rows   INTEGER NOT NULL DEFAULT -1;
ALTER TABLE versions ADD COLUMN fragments      INTEGER NOT NULL DEFAULT -1;
ALTER TABLE versions ADD COLUMN data_files     INTEGER NOT NULL DEFAULT -1;
ALTER TABLE versions ADD COLUMN deletion_files INTEGER NOT NULL DEFAULT -1;
ALTER TABLE versions ADD COLUMN data_bytes     INTEGER NOT NULL DEFAULT -1;
ALTER TABLE versions ADD COLUMN reader_flags   INTEGER NOT NULL DEFAULT -1;
ALTER TABLE versions ADD COLUMN schema_digest  TEXT    NOT NULL DEFAULT ''; -- hexadecimal
ALTER TABLE versions ADD COLUMN change_uuid    TEXT    NOT NULL DEFAULT ''; -- the writer's name for the change, in the writer's words
