-- Which column tells whether the rows of a table stand in the order of an index that was dropped: these are sorted sooner
-- where all fit into memory.
ALTER TABLE @schema@.undo ADD COLUMN first_column text;
COMMENT ON COLUMN @schema@.undo.first_column IS 'The first column of a btree index, in ascending order, if its type is passed by value';
