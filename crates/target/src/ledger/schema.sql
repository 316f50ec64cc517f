-- Version 15. The name of the schema is put in place before it is run, so that no comment may hold it.
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
    finished_at    timestamptz,
    verified       text CHECK (verified IN ('count', 'checksum')),
    error          jsonb,
    ledger_oid     oid
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
COMMENT ON COLUMN @schema@.job.verified IS 'How the rows that its chunks have left were last compared with the sources and found equal; null if they were not';
COMMENT ON COLUMN @schema@.job.error IS 'Why the last run did not end well: kind, message, file, line, record, byte, column, SQLSTATE, hint; no row values. Null while it runs, if it was killed, and when it is done';
COMMENT ON COLUMN @schema@.job.ledger_oid IS 'OID of this table when the job was last begun: where it is another one now, the ledger came from another database by a dump or a replica, and the tables in the plan are found by their names; null: not known';

CREATE TABLE @schema@.file (
    job_id        text NOT NULL REFERENCES @schema@.job ON DELETE CASCADE,
    file_no       integer NOT NULL,
    location      text NOT NULL,
    version       text,
    stored_bytes  bigint,
    target        text NOT NULL,
    rows_read     bigint,
    rows_stored   bigint,
    rows_rejected bigint,
    real_location text,
    PRIMARY KEY (job_id, file_no)
);
COMMENT ON TABLE @schema@.file IS 'The files of each job';
COMMENT ON COLUMN @schema@.file.job_id IS 'The job';
COMMENT ON COLUMN @schema@.file.file_no IS 'Index into the plan''s files';
COMMENT ON COLUMN @schema@.file.location IS 'Path or URL, without credentials';
COMMENT ON COLUMN @schema@.file.version IS 'ETag, or size and modification time; null if it cannot be known (stdin)';
COMMENT ON COLUMN @schema@.file.stored_bytes IS 'Size as stored (compressed where the file is), where known';
COMMENT ON COLUMN @schema@.file.target IS 'The table it is loaded into, schema.name';
COMMENT ON COLUMN @schema@.file.rows_read IS 'Records found in it, the sum of rows_stored and rows_rejected; null until all of it is in';
COMMENT ON COLUMN @schema@.file.rows_stored IS 'Rows in chunks that are in';
COMMENT ON COLUMN @schema@.file.rows_rejected IS 'Records that were refused or left out';
COMMENT ON COLUMN @schema@.file.real_location IS 'Where the links in its path lead; null if there are none';

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
    left_out   bigint NOT NULL DEFAULT 0,
    blank      bigint NOT NULL DEFAULT 0,
    rejected   bigint NOT NULL DEFAULT 0,
    xid        xid8 DEFAULT pg_catalog.pg_current_xact_id(),
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
COMMENT ON COLUMN @schema@.chunk.left_out IS 'Records between start_byte and end_byte that --lenient left out: they are in no table';
COMMENT ON COLUMN @schema@.chunk.blank IS 'Blank records between start_byte and end_byte that --lenient dropped; numbers of records count them';
COMMENT ON COLUMN @schema@.chunk.rejected IS 'Records between start_byte and end_byte that the table refused: they are in the table reject';
COMMENT ON COLUMN @schema@.chunk.xid IS 'The transaction that stored the chunk, which is the xmin of its rows; null for chunks stored by versions that did not keep it';

CREATE TABLE @schema@.chunk_part (
    job_id   text NOT NULL,
    file_no  integer NOT NULL,
    chunk_no bigint NOT NULL
);
CREATE INDEX chunk_part_job_idx ON @schema@.chunk_part (job_id);
-- A publication FOR ALL TABLES lets no row be deleted that nothing identifies.
ALTER TABLE @schema@.chunk_part REPLICA IDENTITY FULL;
COMMENT ON TABLE @schema@.chunk_part IS 'Subtransactions in which rows of a chunk with bad records were stored: the xmin of each row here is that of those rows';
COMMENT ON COLUMN @schema@.chunk_part.job_id IS 'The job';
COMMENT ON COLUMN @schema@.chunk_part.file_no IS 'Index into the plan''s files';
COMMENT ON COLUMN @schema@.chunk_part.chunk_no IS 'The chunk';

CREATE TABLE @schema@.reject (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      text NOT NULL,
    file_no     integer NOT NULL,
    chunk_no    bigint NOT NULL,
    record      bigint,
    start_byte  bigint,
    bytes       bytea NOT NULL,
    as_in_file  boolean NOT NULL,
    column_name text,
    sqlstate    text,
    message     text NOT NULL,
    rejected_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    loaded_by   text
);
CREATE INDEX reject_job_idx ON @schema@.reject (job_id, file_no, record);
CREATE INDEX reject_chunk_idx ON @schema@.reject (job_id, file_no, chunk_no);
COMMENT ON TABLE @schema@.reject IS 'Records that loads with --on-error skip have read and not stored: each row commits in the transaction of its chunk';
COMMENT ON COLUMN @schema@.reject.number IS 'Order in which they were found';
COMMENT ON COLUMN @schema@.reject.job_id IS 'The job that read it';
COMMENT ON COLUMN @schema@.reject.file_no IS 'Index into the plan''s files';
COMMENT ON COLUMN @schema@.reject.chunk_no IS 'The chunk that it is missing from';
COMMENT ON COLUMN @schema@.reject.record IS 'Its number in the file, from 1, the header not counted; null where that cannot be told';
COMMENT ON COLUMN @schema@.reject.start_byte IS 'Its first byte in the plain (decompressed) bytes of the file; null where that cannot be told';
COMMENT ON COLUMN @schema@.reject.bytes IS 'The record with its line ending';
COMMENT ON COLUMN @schema@.reject.as_in_file IS 'bytes are those of the file; if not, those that were sent in their place';
COMMENT ON COLUMN @schema@.reject.column_name IS 'The column whose value was refused, where the server or howdah names one';
COMMENT ON COLUMN @schema@.reject.sqlstate IS 'PostgreSQL''s code for the reason';
COMMENT ON COLUMN @schema@.reject.message IS 'The reason, without values of the row';
COMMENT ON COLUMN @schema@.reject.rejected_at IS 'When';
COMMENT ON COLUMN @schema@.reject.loaded_by IS 'The job that has loaded it after all (--rejects)';

CREATE TABLE @schema@.step (
    job_id    text NOT NULL,
    target    text NOT NULL,
    name      text NOT NULL CHECK (name IN ('parts', 'part', 'delete', 'truncate', 'replace')),
    part_no   integer NOT NULL,
    parts     integer,
    rows      bigint NOT NULL DEFAULT 0,
    inserted  bigint NOT NULL DEFAULT 0,
    updated   bigint NOT NULL DEFAULT 0,
    deleted   bigint NOT NULL DEFAULT 0,
    done_at   timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    held_back bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, target, name, part_no)
);
COMMENT ON TABLE @schema@.step IS 'What jobs have done to their tables besides copying chunks: each row commits in the transaction that did it, so that no run of the job does it again';
COMMENT ON COLUMN @schema@.step.job_id IS 'The job';
COMMENT ON COLUMN @schema@.step.target IS 'The table, schema.name';
COMMENT ON COLUMN @schema@.step.name IS 'parts: into how many parts the rows of its staging table were cut; part: the rows of one came into the table; delete: rows that no record has were deleted; truncate: it was emptied; replace: a new table took its place';
COMMENT ON COLUMN @schema@.step.part_no IS 'Which part, from 0';
COMMENT ON COLUMN @schema@.step.parts IS 'Of parts, how many';
COMMENT ON COLUMN @schema@.step.rows IS 'Rows of its staging table that it has dealt with';
COMMENT ON COLUMN @schema@.step.inserted IS 'Rows that came on top';
COMMENT ON COLUMN @schema@.step.updated IS 'Rows that were there and were changed';
COMMENT ON COLUMN @schema@.step.deleted IS 'Rows that were deleted';
COMMENT ON COLUMN @schema@.step.done_at IS 'When it was begun';
COMMENT ON COLUMN @schema@.step.held_back IS 'Rows that were to be changed and that a trigger or a policy has kept as they were';

-- No foreign key to job: what was dropped must be put back even if somebody deletes the job.
CREATE TABLE @schema@.undo (
    number           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id           text NOT NULL,
    kind             text NOT NULL CHECK (kind IN ('trigger', 'index', 'workers', 'constraint', 'partitioned index', 'partitioned constraint',
                                                   'attach', 'marks', 'foreign key', 'validate', 'staging')),
    schema_name      text NOT NULL,
    table_name       text NOT NULL,
    table_oid        oid NOT NULL,
    name             text NOT NULL,
    definition       text NOT NULL,
    statements       text[] NOT NULL,
    made_at          timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    undone_at        timestamptz,
    compared_by_libc boolean NOT NULL DEFAULT false,
    ledger_oid       oid
);
CREATE INDEX undo_open_idx ON @schema@.undo (job_id) WHERE undone_at IS NULL;
COMMENT ON TABLE @schema@.undo IS 'What loads have changed in the database, and how it is put back: each row commits in the transaction that made the change';
COMMENT ON COLUMN @schema@.undo.number IS 'Order in which the changes were made';
COMMENT ON COLUMN @schema@.undo.job_id IS 'The job that made the change';
COMMENT ON COLUMN @schema@.undo.kind IS 'What is put back: the state of a trigger, an index, a constraint, both of a partitioned table without those of its partitions, the attachment of a partition''s index, marks of an index (CLUSTER, replica identity, extension), a foreign key, or the validation of a foreign key; workers: the table''s parallel_workers, set for the builds of its indexes, are reset; staging: a table in which rows wait is dropped';
COMMENT ON COLUMN @schema@.undo.schema_name IS 'Schema of the table';
COMMENT ON COLUMN @schema@.undo.table_name IS 'The table it belongs to';
COMMENT ON COLUMN @schema@.undo.table_oid IS 'OID of the table when it was changed: nothing is put back into another one of its name, unless the ledger came from another database';
COMMENT ON COLUMN @schema@.undo.name IS 'Name of the index or constraint';
COMMENT ON COLUMN @schema@.undo.definition IS 'As the server told it before, names written in full; of an attachment, the index that it is attached to';
COMMENT ON COLUMN @schema@.undo.statements IS 'Put it back when run in order in one transaction';
COMMENT ON COLUMN @schema@.undo.made_at IS 'When it was changed';
COMMENT ON COLUMN @schema@.undo.undone_at IS 'When it was put back; null while that is still to be done';
COMMENT ON COLUMN @schema@.undo.compared_by_libc IS 'Whether the first column of the index are strings that the server compares by functions of the C library: these are sorted in less memory';
COMMENT ON COLUMN @schema@.undo.ledger_oid IS 'OID of this table when the entry was written: where it is another one now, the ledger came from another database by a dump, and the table is found by its name; null: not known';

-- No foreign key to job: what was tuned must be put back even if somebody deletes the job.
CREATE TABLE @schema@.tuned (
    number         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id         text NOT NULL,
    table_oid      oid NOT NULL,
    schema_name    text NOT NULL,
    table_name     text NOT NULL,
    name           text NOT NULL,
    value_before   text,
    options_before text[],
    value_during   text NOT NULL,
    made_at        timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    undone_at      timestamptz,
    ledger_oid     oid
);
CREATE UNIQUE INDEX tuned_open_idx ON @schema@.tuned (table_oid, name, job_id) WHERE undone_at IS NULL;
COMMENT ON TABLE @schema@.tuned IS 'Settings that loads have changed: each row is committed before its change. Of several loads that hold the same setting, the last puts it back';
COMMENT ON COLUMN @schema@.tuned.number IS 'Order in which the changes were made';
COMMENT ON COLUMN @schema@.tuned.job_id IS 'The job that holds the change';
COMMENT ON COLUMN @schema@.tuned.table_oid IS 'OID of the table; 0 for a setting of the server';
COMMENT ON COLUMN @schema@.tuned.schema_name IS 'Schema of the table; empty for a setting of the server';
COMMENT ON COLUMN @schema@.tuned.table_name IS 'The table; empty for a setting of the server';
COMMENT ON COLUMN @schema@.tuned.name IS 'The setting or storage parameter; those of the TOAST table begin with toast.';
COMMENT ON COLUMN @schema@.tuned.value_before IS 'Its value before the first load that holds it, in postgresql.auto.conf or among the storage parameters; null: it was not there';
COMMENT ON COLUMN @schema@.tuned.options_before IS 'All storage parameters of the table at that time, in order; null: none, or a setting of the server';
COMMENT ON COLUMN @schema@.tuned.value_during IS 'Its value while loads hold it';
COMMENT ON COLUMN @schema@.tuned.made_at IS 'When this load began to hold it';
COMMENT ON COLUMN @schema@.tuned.undone_at IS 'When this load ceased to hold it; null while it does';
COMMENT ON COLUMN @schema@.tuned.ledger_oid IS 'OID of this table when the row was written: where it is another one now, the ledger came from another database by a dump, and the table is found by its name; null: not known';
