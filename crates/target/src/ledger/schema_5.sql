ALTER TABLE @schema@.undo DROP CONSTRAINT undo_kind_check, ADD CONSTRAINT undo_kind_check
    CHECK (kind IN ('trigger', 'index', 'constraint', 'partitioned index', 'partitioned constraint', 'attach', 'marks', 'foreign key',
                    'validate', 'staging'));
COMMENT ON COLUMN @schema@.undo.kind IS 'What is put back: the state of a trigger, an index, a constraint, both of a partitioned table without those of its partitions, the attachment of a partition''s index, marks of an index (CLUSTER, replica identity, extension), a foreign key, or the validation of a foreign key; staging: a table in which rows wait is dropped';

CREATE TABLE @schema@.step (
    job_id   text NOT NULL,
    target   text NOT NULL,
    name     text NOT NULL CHECK (name IN ('parts', 'part', 'delete', 'truncate', 'replace')),
    part_no  integer NOT NULL,
    parts    integer,
    rows     bigint NOT NULL DEFAULT 0,
    inserted bigint NOT NULL DEFAULT 0,
    updated  bigint NOT NULL DEFAULT 0,
    deleted  bigint NOT NULL DEFAULT 0,
    done_at  timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
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
