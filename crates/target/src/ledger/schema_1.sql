CREATE SCHEMA IF NOT EXISTS @schema@;

COMMENT ON SCHEMA @schema@ IS 'What howdah has loaded, so that a load can be resumed and never doubles a row';

CREATE TABLE @schema@.migration (
    version        integer PRIMARY KEY,
    howdah_version text NOT NULL,
    applied_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE @schema@.migration IS 'Versions of this schema; the largest is the present one';
COMMENT ON COLUMN @schema@.migration.version IS 'Counted from 1';
COMMENT ON COLUMN @schema@.migration.howdah_version IS 'The howdah that applied it';
COMMENT ON COLUMN @schema@.migration.applied_at IS 'When';

CREATE TABLE @schema@.job (
    job_id         text PRIMARY KEY,
    work_key       text NOT NULL,
    status         text NOT NULL CHECK (status IN ('running', 'done', 'failed', 'interrupted')),
    plan           jsonb NOT NULL,
    rows_stored    bigint,
    runs           integer NOT NULL DEFAULT 1,
    howdah_version text NOT NULL,
    started_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    finished_at    timestamptz
);
CREATE INDEX job_work_key_idx ON @schema@.job (work_key);
COMMENT ON TABLE @schema@.job IS 'One row per load; running it again adds to the same row';
COMMENT ON COLUMN @schema@.job.job_id IS 'Given by --job-id, or a digest of sources with their versions, tables and options';
COMMENT ON COLUMN @schema@.job.work_key IS 'The same digest without the versions of the sources: finds runs of files that have changed since';
COMMENT ON COLUMN @schema@.job.status IS 'running (or killed while it ran), done, failed, interrupted';
COMMENT ON COLUMN @schema@.job.plan IS 'What was decided before the first byte moved; no secrets, no row values';
COMMENT ON COLUMN @schema@.job.rows_stored IS 'Rows in the tables when the job was last closed';
COMMENT ON COLUMN @schema@.job.runs IS 'How many times it was started';
COMMENT ON COLUMN @schema@.job.howdah_version IS 'The howdah that ran it last';
COMMENT ON COLUMN @schema@.job.started_at IS 'When its first run began';
COMMENT ON COLUMN @schema@.job.finished_at IS 'When its last run was closed; null while it runs or if it was killed';

CREATE TABLE @schema@.file (
    job_id       text NOT NULL REFERENCES @schema@.job ON DELETE CASCADE,
    file_no      integer NOT NULL,
    location     text NOT NULL,
    version      text,
    stored_bytes bigint,
    target       text NOT NULL,
    PRIMARY KEY (job_id, file_no)
);
COMMENT ON TABLE @schema@.file IS 'The files of each job';
COMMENT ON COLUMN @schema@.file.job_id IS 'The job';
COMMENT ON COLUMN @schema@.file.file_no IS 'Index into the plan''s files';
COMMENT ON COLUMN @schema@.file.location IS 'Path or URL, without credentials';
COMMENT ON COLUMN @schema@.file.version IS 'ETag, or size and modification time; null if it cannot be known (stdin)';
COMMENT ON COLUMN @schema@.file.stored_bytes IS 'Size as stored (compressed where the file is), where known';
COMMENT ON COLUMN @schema@.file.target IS 'The table it is loaded into, schema.name';

-- No foreign key to job: checking it would lock the job's row once per chunk from every session at once.
CREATE TABLE @schema@.chunk (
    job_id     text NOT NULL,
    file_no    integer NOT NULL,
    chunk_no   bigint NOT NULL,
    start_byte bigint NOT NULL,
    end_byte   bigint NOT NULL,
    rows       bigint NOT NULL,
    digest     bigint,
    stored_at  timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (job_id, file_no, chunk_no)
);
COMMENT ON TABLE @schema@.chunk IS 'Chunks that are in their table: each row commits in the transaction that stored the chunk';
COMMENT ON COLUMN @schema@.chunk.job_id IS 'The job';
COMMENT ON COLUMN @schema@.chunk.file_no IS 'Index into the plan''s files';
COMMENT ON COLUMN @schema@.chunk.chunk_no IS 'The records that start in [chunk_no * C, (chunk_no + 1) * C) of the file''s plain bytes, C being the plan''s chunk_bytes';
COMMENT ON COLUMN @schema@.chunk.start_byte IS 'First byte of the first record, in plain (decompressed) bytes';
COMMENT ON COLUMN @schema@.chunk.end_byte IS 'One past the last byte of the last record';
COMMENT ON COLUMN @schema@.chunk.rows IS 'Rows stored';
COMMENT ON COLUMN @schema@.chunk.digest IS 'XXH3 of the plain bytes, taken where the file has no version (a pipe)';
COMMENT ON COLUMN @schema@.chunk.stored_at IS 'When the chunk was claimed';
