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
    undone_at      timestamptz
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
