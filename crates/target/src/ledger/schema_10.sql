-- Not by default: entries of before say nothing.
ALTER TABLE @schema@.undo ADD COLUMN ledger_oid oid;
COMMENT ON COLUMN @schema@.undo.ledger_oid IS 'OID of this table when the entry was written: where it is another one now, the ledger came from another database by a dump, and the table is found by its name; null: not known';
COMMENT ON COLUMN @schema@.undo.table_oid IS 'OID of the table when it was changed: nothing is put back into another one of its name, unless the ledger came from another database';
ALTER TABLE @schema@.tuned ADD COLUMN ledger_oid oid;
COMMENT ON COLUMN @schema@.tuned.ledger_oid IS 'OID of this table when the row was written: where it is another one now, the ledger came from another database by a dump, and the table is found by its name; null: not known';
