ALTER TABLE @schema@.job ADD COLUMN error jsonb;
COMMENT ON COLUMN @schema@.job.error IS 'Why the last run did not end well: kind, message, file, line, record, byte, column, SQLSTATE, hint; no row values. Null while it runs, if it was killed, and when it is done';
