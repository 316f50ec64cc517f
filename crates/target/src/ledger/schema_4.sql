ALTER TABLE @schema@.chunk ADD COLUMN rejected bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN @schema@.chunk.rejected IS 'Records between start_byte and end_byte that the table refused: they are in the table reject';

CREATE TABLE @schema@.reject (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      text NOT NULL,
    file_no     integer NOT NULL,
    chunk_no    bigint NOT NULL,
    record      bigint NOT NULL,
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
COMMENT ON TABLE @schema@.reject IS 'Records that loads with --on-error skip have read and not stored: each row commits in the transaction of its chunk';
COMMENT ON COLUMN @schema@.reject.number IS 'Order in which they were found';
COMMENT ON COLUMN @schema@.reject.job_id IS 'The job that read it';
COMMENT ON COLUMN @schema@.reject.file_no IS 'Index into the plan''s files';
COMMENT ON COLUMN @schema@.reject.chunk_no IS 'The chunk that it is missing from';
COMMENT ON COLUMN @schema@.reject.record IS 'Its number in the file, from 1, the header not counted';
COMMENT ON COLUMN @schema@.reject.start_byte IS 'Its first byte in the plain (decompressed) bytes of the file; null where that cannot be told';
COMMENT ON COLUMN @schema@.reject.bytes IS 'The record with its line ending';
COMMENT ON COLUMN @schema@.reject.as_in_file IS 'bytes are those of the file; if not, those that were sent in their place';
COMMENT ON COLUMN @schema@.reject.column_name IS 'The column whose value was refused, where the server or howdah names one';
COMMENT ON COLUMN @schema@.reject.sqlstate IS 'PostgreSQL''s code for the reason';
COMMENT ON COLUMN @schema@.reject.message IS 'The reason, without values of the row';
COMMENT ON COLUMN @schema@.reject.rejected_at IS 'When';
COMMENT ON COLUMN @schema@.reject.loaded_by IS 'The job that has loaded it after all (--rejects)';
