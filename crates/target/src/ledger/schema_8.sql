ALTER TABLE @schema@.undo DROP CONSTRAINT undo_kind_check, ADD CONSTRAINT undo_kind_check
    CHECK (kind IN ('trigger', 'index', 'workers', 'constraint', 'partitioned index', 'partitioned constraint', 'attach', 'marks',
                    'foreign key', 'validate', 'staging'));
COMMENT ON COLUMN @schema@.undo.kind IS 'What is put back: the state of a trigger, an index, a constraint, both of a partitioned table without those of its partitions, the attachment of a partition''s index, marks of an index (CLUSTER, replica identity, extension), a foreign key, or the validation of a foreign key; workers: the table''s parallel_workers, set for the builds of its indexes, are reset; staging: a table in which rows wait is dropped';
ALTER TABLE @schema@.undo ADD COLUMN compared_by_libc boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN @schema@.undo.compared_by_libc IS 'Whether the first column of the index are strings that the server compares by functions of the C library: these are sorted in less memory';
