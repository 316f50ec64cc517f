ALTER TABLE @schema@.reject ALTER COLUMN record DROP NOT NULL;
COMMENT ON COLUMN @schema@.reject.record IS 'Its number in the file, from 1, the header not counted; null where that cannot be told';
