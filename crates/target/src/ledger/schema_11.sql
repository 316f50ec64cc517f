ALTER TABLE @schema@.step ADD COLUMN held_back bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN @schema@.step.held_back IS 'Rows that were to be changed and that a trigger or a policy has kept as they were';
