-- In two steps: a column that is added with such a default would give all chunks of the past this transaction.
ALTER TABLE @schema@.chunk ADD COLUMN xid xid8;
ALTER TABLE @schema@.chunk ALTER COLUMN xid SET DEFAULT pg_catalog.pg_current_xact_id();
COMMENT ON COLUMN @schema@.chunk.xid IS 'The transaction that stored the chunk, which is the xmin of its rows; null for chunks stored by versions that did not keep it';

CREATE TABLE @schema@.chunk_part (
    job_id   text NOT NULL,
    file_no  integer NOT NULL,
    chunk_no bigint NOT NULL
);
CREATE INDEX chunk_part_job_idx ON @schema@.chunk_part (job_id);
COMMENT ON TABLE @schema@.chunk_part IS 'Subtransactions in which rows of a chunk with bad records were stored: the xmin of each row here is that of those rows';
COMMENT ON COLUMN @schema@.chunk_part.job_id IS 'The job';
COMMENT ON COLUMN @schema@.chunk_part.file_no IS 'Index into the plan''s files';
COMMENT ON COLUMN @schema@.chunk_part.chunk_no IS 'The chunk';

CREATE INDEX reject_chunk_idx ON @schema@.reject (job_id, file_no, chunk_no);

ALTER TABLE @schema@.job ADD COLUMN verified text CHECK (verified IN ('count', 'checksum'));
COMMENT ON COLUMN @schema@.job.verified IS 'How the rows that its chunks have left were last compared with the sources and found equal; null if they were not';

ALTER TABLE @schema@.file
    ADD COLUMN rows_read     bigint,
    ADD COLUMN rows_stored   bigint,
    ADD COLUMN rows_rejected bigint;
COMMENT ON COLUMN @schema@.file.rows_read IS 'Records found in it, the sum of rows_stored and rows_rejected; null until all of it is in';
COMMENT ON COLUMN @schema@.file.rows_stored IS 'Rows in chunks that are in';
COMMENT ON COLUMN @schema@.file.rows_rejected IS 'Records that were refused or left out';
