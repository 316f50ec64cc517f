ALTER TABLE @schema@.job ADD COLUMN ledger_oid oid;
COMMENT ON COLUMN @schema@.job.ledger_oid IS 'OID of this table when the job was last begun: where it is another one now, the ledger came from another database by a dump or a replica, and the tables in the plan are found by their names; null: not known';
UPDATE @schema@.job j SET ledger_oid = j.tableoid
    WHERE EXISTS (SELECT FROM pg_catalog.jsonb_path_query(j.plan, '$.tables[*].table') AS t
                  JOIN pg_catalog.pg_class c ON c.oid = (t ->> 'oid'::pg_catalog.text)::pg_catalog.oid
                  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                  WHERE c.relname = t #>> '{relation,name}'::pg_catalog.text[] AND n.nspname = t #>> '{relation,schema}'::pg_catalog.text[]);
