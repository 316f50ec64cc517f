//! What is asked of the catalog, under an empty `search_path`, so that definitions name everything in full.
//!
//! Each statement begins with [`crate::tree::BY_NAME_SQL`] and takes schema and name of the table as `$1` and
//! `$2`, so that all of them can be sent together. Columns that later versions have come out of `to_jsonb`,
//! which knows those that are there.

use crate::build::compared_by_libc;

/// What rows that are inserted into the tables may fire. Constraints have triggers of the server's own. For
/// the definition of a trigger with WHEN the server waits for whoever has the table to himself.
pub(super) const TRIGGERS_SQL: &str = "\
    SELECT t.tgname, t.tgrelid, n.nspname, c.relname, t.tgenabled::text, t.tgtype & 1::pg_catalog.int2 = 1, t.tgtype & 2::pg_catalog.int2 = 2, \
           con.contype::text, con.conname, pg_catalog.pg_has_role(c.relowner, 'USAGE'), c.relkind = 'p', \
           t.oid, t.tgparentid, @definition@, current_user::text, \
           pg_catalog.current_setting('session_replication_role') = 'replica' \
    FROM tree JOIN pg_catalog.pg_trigger t ON t.tgrelid = tree.oid AND t.tgtype & 4::pg_catalog.int2 = 4 \
    JOIN pg_catalog.pg_class c ON c.oid = tree.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_catalog.pg_constraint con ON con.oid = t.tgconstraint AND con.contype <> 't' \
    ORDER BY tree.level, n.nspname, c.relname, t.tgname";

/// The table and its partitions, and what forbids touching their indexes at all.
pub(super) const TABLES_SQL: &str = "\
    SELECT c.oid, n.nspname, c.relname, c.relispartition, c.relkind = 'r', \
           EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = c.oid), \
           c.oid < 16384::pg_catalog.oid OR n.nspname IN ('pg_catalog', 'information_schema', 'pg_toast'), \
           pg_catalog.pg_has_role(c.relowner, 'USAGE'), \
           pg_catalog.has_schema_privilege(n.oid, 'CREATE'), \
           EXISTS (SELECT FROM pg_catalog.pg_publication_tables p \
                   WHERE p.schemaname = n.nspname AND p.tablename = c.relname) \
             OR EXISTS (SELECT FROM pg_catalog.pg_replication_slots s \
                        WHERE s.slot_type = 'logical' AND s.database = pg_catalog.current_database()) \
             OR EXISTS (SELECT FROM pg_catalog.pg_subscription_rel r WHERE r.srrelid = c.oid), \
           CASE WHEN c.relkind = 'r' THEN pg_catalog.pg_relation_size(c.oid) ELSE 0 END, \
           c.reltuples::pg_catalog.float8, c.relpages::pg_catalog.int8, \
           pg_catalog.current_setting('block_size')::pg_catalog.int8, c.relkind = 'p', \
           EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = c.oid \
                   AND (pg_catalog.to_jsonb(h) ->> 'inhdetachpending'::pg_catalog.text)::pg_catalog.bool), \
           c.relhasindex OR c.relhastriggers, \
           EXISTS (SELECT FROM pg_catalog.unnest(c.reloptions) o WHERE o LIKE 'parallel_workers=%') \
    FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY tree.level, n.nspname, c.relname";

/// The access method of the index `ic`.
macro_rules! method {
    () => {
        "(SELECT am.amname FROM pg_catalog.pg_am am WHERE am.oid = ic.relam)"
    };
}

/// The indexes of these tables, with the constraint that each belongs to. Who applies what a subscription
/// brings finds rows by the primary key where the replica identity is no index. What else depends on an index
/// or its constraint than foreign keys (views that group by a primary key, functions) cannot be dropped along
/// with it. Names are looked up one by one: the planner tries joins in every order, and three more take it
/// longer than the rest.
pub(super) const INDEXES_SQL: &str = concat!(
    "SELECT i.indexrelid, ic.relname, pg_catalog.pg_get_indexdef(i.indexrelid), i.indisunique, \
           i.indisvalid AND i.indisready AND i.indislive, \
           i.indisreplident OR (i.indisprimary AND (c.relreplident = 'd' \
               OR EXISTS (SELECT FROM pg_catalog.pg_subscription_rel r JOIN tree s ON s.oid = r.srrelid))), \
           i.indisclustered, i.indisreplident, ",
    method!(),
    ", \
           coalesce((SELECT ts.spcname FROM pg_catalog.pg_tablespace ts WHERE ts.oid = ic.reltablespace), ''), \
           ic.reltablespace = 0::pg_catalog.oid OR pg_catalog.has_tablespace_privilege(ic.reltablespace, 'CREATE'), \
           pg_catalog.obj_description(i.indexrelid, 'pg_class'), \
           con.contype::text, con.condeferrable, con.condeferred, pg_catalog.pg_get_constraintdef(con.oid), \
           pg_catalog.obj_description(con.oid, 'pg_constraint'), \
           coalesce((pg_catalog.to_jsonb(con) ->> 'conperiod'::pg_catalog.text)::pg_catalog.bool, false), \
           ARRAY(SELECT a.attnum::pg_catalog.int4 FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = i.indexrelid AND a.attstattarget >= 0 ORDER BY a.attnum), \
           ARRAY(SELECT a.attstattarget::pg_catalog.int4 FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = i.indexrelid AND a.attstattarget >= 0 ORDER BY a.attnum), \
           ARRAY(SELECT e.extname::text FROM pg_catalog.pg_depend d \
                 JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid \
                 WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.objid = i.indexrelid \
                   AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid AND d.deptype = 'x' \
                 ORDER BY 1), \
           (SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_catalog.pg_depend d \
            WHERE ((d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.refobjid = i.indexrelid) \
                OR (d.refclassid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid AND d.refobjid = con.oid)) \
              AND d.deptype IN ('n', 'a') \
              AND NOT (d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid \
                       AND EXISTS (SELECT FROM pg_catalog.pg_constraint f \
                                   WHERE f.oid = d.objid AND f.contype = 'f')) \
            LIMIT 1), \
           EXISTS (SELECT FROM pg_catalog.pg_depend d \
                   WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.objid = i.indexrelid \
                     AND d.deptype = 'e'), \
           (SELECT pg_catalog.bool_or(a.attlen < 0) FROM pg_catalog.pg_attribute a \
            WHERE a.attrelid = i.indexrelid AND a.attnum <= i.indnkeyatts), \
           i.indexprs IS NOT NULL OR i.indpred IS NOT NULL, \
           i.indrelid, (SELECT n.nspname FROM pg_catalog.pg_namespace n WHERE n.oid = c.relnamespace), c.relname, ic.relkind = 'I', \
           (SELECT h.inhparent FROM pg_catalog.pg_inherits h WHERE h.inhrelid = i.indexrelid), \
           (SELECT pg_catalog.string_agg(pg_catalog.format('%I=%L', o.option_name, o.option_value), ', ') \
            FROM pg_catalog.pg_options_to_table(ic.reloptions) o), \
           ",
    method!(),
    " = 'btree' AND ",
    compared_by_libc!(),
    ", \
           i.indexprs IS NOT NULL OR i.indpred IS NOT NULL OR ",
    method!(),
    " NOT IN ('btree', 'hash', 'brin') \
           OR EXISTS (SELECT FROM pg_catalog.pg_opclass o WHERE o.oid = ANY (i.indclass::pg_catalog.oid[]) AND NOT o.opcdefault), \
           (SELECT CASE WHEN pg_catalog.bool_and(a.attlen > 0) THEN pg_catalog.sum((a.attlen + 7) / 8 * 8) END \
            FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indexrelid), \
           CASE con.contype WHEN 'p' THEN ( \
               SELECT pg_catalog.min(a.attname::text) FROM pg_catalog.pg_constraint nn \
               JOIN pg_catalog.pg_attribute a ON a.attrelid = nn.conrelid AND a.attnum = nn.conkey[1] \
               WHERE nn.conrelid = i.indrelid AND nn.contype = 'n' AND nn.connoinherit AND nn.conkey[1] = ANY (con.conkey)) END, \
           con.contype = 'p' AND EXISTS (SELECT FROM pg_catalog.pg_constraint nn \
               WHERE nn.conrelid = i.indrelid AND nn.contype = 'n' AND NOT nn.conislocal AND nn.conkey[1] = ANY (con.conkey)) \
    FROM tree JOIN pg_catalog.pg_index i ON i.indrelid = tree.oid \
    JOIN pg_catalog.pg_class ic ON ic.oid = i.indexrelid \
    JOIN pg_catalog.pg_class c ON c.oid = i.indrelid \
    LEFT JOIN pg_catalog.pg_constraint con \
      ON con.conindid = i.indexrelid AND con.conrelid = i.indrelid AND con.contype IN ('p', 'u', 'x') \
    ORDER BY pg_catalog.pg_relation_size(i.indexrelid) DESC, 24 DESC NULLS LAST, ic.relname, 27"
);

/// The definitions of the indexes `$1`, and of the exclusion constraint of each: asked under whatever
/// `search_path` they are to be read in.
pub(super) const DEFINITIONS_SQL: &str = "\
    SELECT i.oid, pg_catalog.pg_get_indexdef(i.oid), \
           (SELECT pg_catalog.pg_get_constraintdef(con.oid) FROM pg_catalog.pg_constraint con \
            WHERE con.conindid OPERATOR(pg_catalog.=) i.oid AND con.contype OPERATOR(pg_catalog.=) 'x'::pg_catalog.\"char\") \
    FROM pg_catalog.unnest($1) AS i (oid)";

/// A foreign key of this definition may hang on the index `twin`: `transformFkeyCheckAttrs` of the server
/// takes the first by OID of those that are unique on the same columns, in whatever order.
macro_rules! may_hang {
    () => {
        "twin.indisunique AND twin.indisvalid AND twin.indimmediate AND twin.indpred IS NULL AND twin.indexprs IS NULL \
            AND twin.indnkeyatts = pg_catalog.cardinality(con.confkey) \
            AND con.confkey @> (twin.indkey::pg_catalog.int2[])[0:twin.indnkeyatts - 1]"
    };
}

pub(crate) use may_hang;

/// The foreign keys of these tables and those of others that refer to them, each once: what the server makes
/// of one for the sake of partitions belongs to it. From PostgreSQL 18 on, that of a partitioned table can be
/// NOT VALID; it comes back exactly if what the partitions have of it is what the server would make.
pub(super) const FOREIGN_KEYS_SQL: &str = concat!(
    "SELECT con.conname, con.conrelid, n.nspname, c.relname, con.confrelid, con.conindid, \
           pg_catalog.pg_get_constraintdef(con.oid), con.convalidated, \
           pg_catalog.obj_description(con.oid, 'pg_constraint'), \
           pg_catalog.pg_has_role(c.relowner, 'USAGE'), \
           pg_catalog.has_table_privilege(con.confrelid, 'REFERENCES'), \
           pg_catalog.pg_has_role(r.relowner, 'USAGE'), \
           c.relispartition OR r.relkind <> 'r' OR r.relispartition OR (c.relkind <> 'r' AND NOT ( \
               pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 180000 \
               AND con.conrelid = (SELECT tree.oid FROM tree WHERE tree.level = 0) \
               AND (SELECT pg_catalog.count(*) FROM tree) = (SELECT pg_catalog.count(*) + 1 \
                    FROM tree JOIN pg_catalog.pg_constraint part ON part.conrelid = tree.oid \
                    WHERE part.contype = 'f' AND part.conparentid <> 0::pg_catalog.oid AND part.conname = con.conname \
                      AND part.convalidated = con.convalidated \
                      AND pg_catalog.obj_description(part.oid, 'pg_constraint') IS NULL \
                      AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t \
                                      WHERE t.tgconstraint = part.oid AND t.tgenabled <> 'O')))), \
           EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgconstraint = con.oid AND t.tgenabled <> 'O'), \
           coalesce((pg_catalog.to_jsonb(con) ->> 'conenforced'::pg_catalog.text)::pg_catalog.bool, true), \
           coalesce((pg_catalog.to_jsonb(con) ->> 'conperiod'::pg_catalog.text)::pg_catalog.bool, false), \
           (SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_catalog.pg_depend d \
            WHERE d.refclassid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid AND d.refobjid = con.oid \
              AND d.deptype IN ('n', 'a') LIMIT 1), \
           rn.nspname, r.relname, \
           CASE WHEN NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE') THEN n.nspname \
                WHEN NOT pg_catalog.has_schema_privilege(rn.oid, 'USAGE') THEN rn.nspname END, \
           (SELECT tc.relname FROM pg_catalog.pg_index twin JOIN pg_catalog.pg_class tc ON tc.oid = twin.indexrelid \
            WHERE twin.indrelid = con.confrelid AND twin.indexrelid <> con.conindid AND ",
    may_hang!(),
    " ORDER BY 1 LIMIT 1) \
    FROM pg_catalog.pg_constraint con \
    JOIN pg_catalog.pg_class c ON c.oid = con.conrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_class r ON r.oid = con.confrelid \
    JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace \
    WHERE con.contype = 'f' AND con.conparentid = 0::pg_catalog.oid \
      AND EXISTS (SELECT FROM tree WHERE tree.oid IN (con.conrelid, con.confrelid)) \
    ORDER BY n.nspname, c.relname, con.conname"
);
