-- No foreign key to job: what was dropped must be put back even if somebody deletes the job.
CREATE TABLE @schema@.undo (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id       text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('trigger', 'index', 'constraint', 'partitioned index', 'partitioned constraint', 'attach',
                                              'marks', 'foreign key', 'validate')),
    schema_name  text NOT NULL,
    table_name   text NOT NULL,
    table_oid    oid NOT NULL,
    name         text NOT NULL,
    definition   text NOT NULL,
    statements   text[] NOT NULL,
    made_at      timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    undone_at    timestamptz
);
CREATE INDEX undo_open_idx ON @schema@.undo (job_id) WHERE undone_at IS NULL;
COMMENT ON TABLE @schema@.undo IS 'What loads have changed in the database, and how it is put back: each row commits in the transaction that made the change';
COMMENT ON COLUMN @schema@.undo.number IS 'Order in which the changes were made';
COMMENT ON COLUMN @schema@.undo.job_id IS 'The job that made the change';
COMMENT ON COLUMN @schema@.undo.kind IS 'What is put back: the state of a trigger, an index, a constraint, both of a partitioned table without those of its partitions, the attachment of a partition''s index, marks of an index (CLUSTER, replica identity, extension), a foreign key, or the validation of a foreign key';
COMMENT ON COLUMN @schema@.undo.schema_name IS 'Schema of the table';
COMMENT ON COLUMN @schema@.undo.table_name IS 'The table it belongs to';
COMMENT ON COLUMN @schema@.undo.table_oid IS 'OID of the table when it was changed: nothing is put back into another one of its name';
COMMENT ON COLUMN @schema@.undo.name IS 'Name of the index or constraint';
COMMENT ON COLUMN @schema@.undo.definition IS 'As the server told it before, names written in full; of an attachment, the index that it is attached to';
COMMENT ON COLUMN @schema@.undo.statements IS 'Put it back when run in order in one transaction';
COMMENT ON COLUMN @schema@.undo.made_at IS 'When it was changed';
COMMENT ON COLUMN @schema@.undo.undone_at IS 'When it was put back; null while that is still to be done';
