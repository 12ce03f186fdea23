-- The indexes of jobs hold all of them, but for a condition that statements about a single job do not state: while there are few jobs PostgreSQL
-- would find one by reading all of such an index, and a transaction that does so meets everybody who adds a job.
DROP INDEX jobs_due;
DROP INDEX jobs_kind;
CREATE INDEX jobs_due ON jobs (run_at, id) WHERE attempts >= 0;
CREATE INDEX jobs_kind ON jobs (kind, id) WHERE attempts >= 0;
