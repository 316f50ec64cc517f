ALTER TABLE @schema@.chunk
    ADD COLUMN left_out bigint NOT NULL DEFAULT 0,
    ADD COLUMN blank    bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN @schema@.chunk.left_out IS 'Records between start_byte and end_byte that --lenient left out: they are in no table';
COMMENT ON COLUMN @schema@.chunk.blank IS 'Blank records between start_byte and end_byte that --lenient dropped; numbers of records count them';
