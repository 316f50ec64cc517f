//! Why a table cannot be replaced: what hangs on it that a new table would not get exactly as it was.

use crate::undo::may_hang;

/// Each row is a reason. `$1` and `$2` are schema and name of the table. What depends on the table or on its
/// row type, and is none of the things that are made anew (nor a default of the new table), is a reason of
/// its own, so that nothing is forgotten. Comments are read from their catalog: `obj_description` is written
/// in SQL before PostgreSQL 14, and looks operators up in the `search_path`. A table gets a TOAST table if a
/// column can be stored there and a row may be too long for a page's quarter (`needs_toast_table`); the
/// numbers are the types whose values have a greatest length: `char`, `varchar`, `bit`, `varbit`, `numeric`.
pub(super) const REFUSALS_SQL: &str = concat!(
    "WITH t AS (SELECT c.*, n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = $1 AND c.relname = $2), \
    own AS ( \
        SELECT i.indexrelid AS oid FROM t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid \
        UNION ALL SELECT d.objid FROM t JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.deptype IN ('a', 'i') \
            AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid JOIN pg_catalog.pg_class s ON s.oid = d.objid \
            AND s.relkind = 'S'), \
    said AS ( \
        SELECT c.objoid AS oid, c.classoid AS class FROM pg_catalog.pg_description c WHERE c.objsubid = 0) \
    SELECT 'it is no ordinary, logged table' FROM t WHERE relkind <> 'r' OR relpersistence <> 'p' OR reloftype <> 0::pg_catalog.oid \
    UNION ALL SELECT 'it is a partition' FROM t WHERE relispartition \
    UNION ALL SELECT 'it inherits from another table, or another from it' FROM t WHERE NOT relispartition AND EXISTS ( \
        SELECT FROM pg_catalog.pg_inherits h WHERE t.oid IN (h.inhrelid, h.inhparent)) \
    UNION ALL SELECT pg_catalog.format('the foreign key %s of %s refers to it', f.conname, f.conrelid::pg_catalog.regclass) \
        FROM t JOIN pg_catalog.pg_constraint f ON f.confrelid = t.oid AND f.contype = 'f' \
    UNION ALL SELECT pg_catalog.format('the exclusion constraint %s cannot be built beforehand', x.conname) \
        FROM t JOIN pg_catalog.pg_constraint x ON x.conrelid = t.oid AND x.contype = 'x' \
    UNION ALL SELECT pg_catalog.format('the constraint %s is not valid or not enforced', x.conname) \
        FROM t JOIN pg_catalog.pg_constraint x ON x.conrelid = t.oid AND x.conparentid = 0::pg_catalog.oid \
        WHERE NOT x.convalidated OR NOT coalesce((pg_catalog.to_jsonb(x) ->> 'conenforced'::pg_catalog.text)::pg_catalog.bool, true) \
    UNION ALL SELECT pg_catalog.format('the NOT NULL of %s, a column of the primary key %s, is NO INHERIT', a.attname, k.conname) \
        FROM t JOIN pg_catalog.pg_constraint k ON k.conrelid = t.oid AND k.contype = 'p' \
        JOIN pg_catalog.pg_constraint x ON x.conrelid = t.oid AND x.contype = 'n' AND x.connoinherit AND x.conkey[1] = ANY (k.conkey) \
        JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.conkey[1] \
    UNION ALL SELECT 'its replica identity is an index that is gone' FROM t WHERE relreplident = 'i' AND NOT EXISTS ( \
        SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = t.oid AND i.indisreplident) \
    UNION ALL SELECT 'its TOAST table has storage parameters, and a new table would have no TOAST table' \
        FROM t JOIN pg_catalog.pg_class x ON x.oid = t.reltoastrelid WHERE x.reloptions IS NOT NULL AND NOT EXISTS ( \
            SELECT FROM (SELECT a.attlen, a.attstorage, a.atttypmod < 0 OR a.atttypid NOT IN (1042, 1043, 1560, 1562, 1700) AS is_endless, \
                                CASE WHEN a.attlen > 0 THEN a.attlen WHEN a.atttypid IN (1042, 1043) THEN (a.atttypmod - 4) * ( \
                                    SELECT pg_catalog.pg_encoding_max_length(b.encoding) FROM pg_catalog.pg_database b \
                                    WHERE b.datname = pg_catalog.current_database()) \
                                WHEN a.atttypid IN (1560, 1562) THEN a.atttypmod / 8 ELSE 0 END AS bytes \
                         FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped) c \
            HAVING pg_catalog.bool_or(attlen < 0 AND attstorage <> 'p') \
               AND (pg_catalog.bool_or(attlen < 0 AND is_endless) OR pg_catalog.sum(bytes) > 2000)) \
    UNION ALL SELECT pg_catalog.format('the constraint %s is a key over time', x.conname) \
        FROM t JOIN pg_catalog.pg_constraint x ON x.conrelid = t.oid \
        WHERE coalesce((pg_catalog.to_jsonb(x) ->> 'conperiod'::pg_catalog.text)::pg_catalog.bool, false) \
    UNION ALL SELECT pg_catalog.format('the triggers of the constraint %s are disabled or enabled otherwise than usual', x.conname) \
        FROM t JOIN pg_catalog.pg_constraint x ON x.conrelid = t.oid \
        WHERE EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgconstraint = x.oid AND g.tgisinternal AND g.tgenabled <> 'O') \
    UNION ALL SELECT pg_catalog.format('it has the rule %s', r.rulename) \
        FROM t JOIN pg_catalog.pg_rewrite r ON r.ev_class = t.oid \
    UNION ALL SELECT pg_catalog.format('it is part of the publication %s', p.pubname) \
        FROM t JOIN pg_catalog.pg_publication_tables p ON p.schemaname = t.nspname AND p.tablename = t.relname \
    UNION ALL SELECT 'a subscription writes into it' FROM t WHERE EXISTS ( \
        SELECT FROM pg_catalog.pg_subscription_rel r WHERE r.srrelid = t.oid) \
    UNION ALL SELECT 'it, its row type or an identity sequence has a security label' FROM t WHERE EXISTS ( \
        SELECT FROM pg_catalog.pg_seclabel l WHERE l.objoid IN (t.oid, t.reltype) \
            OR l.objoid IN (SELECT d.objid FROM pg_catalog.pg_depend d WHERE d.refobjid = t.oid AND d.deptype = 'i' \
                            AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid)) \
    UNION ALL SELECT 'it has to do with an extension' FROM t WHERE EXISTS ( \
        SELECT FROM pg_catalog.pg_depend d WHERE d.deptype IN ('e', 'x') AND (d.objid = t.oid \
            OR d.objid IN (SELECT oid FROM own) OR d.objid IN (SELECT oid FROM pg_catalog.pg_trigger g WHERE g.tgrelid = t.oid))) \
    UNION ALL SELECT pg_catalog.format('privileges were granted on it by %s', g.grantor::pg_catalog.regrole) \
        FROM t, LATERAL (SELECT a.grantor FROM pg_catalog.aclexplode(t.relacl) a \
            UNION SELECT a.grantor FROM pg_catalog.pg_attribute c, pg_catalog.aclexplode(c.attacl) a \
            WHERE c.attrelid = t.oid AND NOT c.attisdropped) g WHERE g.grantor <> t.relowner \
    UNION ALL SELECT pg_catalog.format('the index %s is not valid, in a tablespace of its own, or has statistics targets', x.relname) \
        FROM t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
        WHERE NOT i.indisvalid OR x.reltablespace <> 0::pg_catalog.oid OR EXISTS (SELECT FROM pg_catalog.pg_attribute a \
            WHERE a.attrelid = x.oid AND coalesce(a.attstattarget, -1) >= 0) \
    UNION ALL SELECT pg_catalog.format('the identity sequence %s has privileges or a comment of its own', s.relname) \
        FROM t JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.deptype = 'i' \
            AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
        JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S' \
        WHERE s.relacl OPERATOR(pg_catalog.<>) pg_catalog.acldefault('s', s.relowner) OR s.relpersistence <> 'p' OR EXISTS (SELECT FROM said \
            WHERE said.oid = s.oid AND said.class = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid) \
    UNION ALL SELECT pg_catalog.format('a default value belongs to the sequence %s of another table', d.refobjid::pg_catalog.regclass) \
        FROM t JOIN pg_catalog.pg_attrdef e ON e.adrelid = t.oid \
        JOIN pg_catalog.pg_depend d ON d.objid = e.oid AND d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
        JOIN pg_catalog.pg_class s ON s.oid = d.refobjid AND s.relkind = 'S' \
        JOIN pg_catalog.pg_depend o ON o.objid = s.oid AND o.deptype = 'a' AND o.refobjid <> t.oid \
            AND o.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    UNION ALL SELECT 'the comment on its row type' FROM t JOIN pg_catalog.pg_type y ON y.oid = t.reltype \
        WHERE EXISTS (SELECT FROM said \
            WHERE said.oid IN (y.oid, y.typarray) AND said.class = 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid) \
    UNION ALL SELECT 'the privileges on its row type' FROM t JOIN pg_catalog.pg_type y ON y.oid = t.reltype \
        WHERE y.typacl OPERATOR(pg_catalog.<>) pg_catalog.acldefault('T', y.typowner) \
    UNION ALL SELECT pg_catalog.format('the foreign key %s hangs on another unique index of %s than a new one would', \
                                       con.conname, con.confrelid::pg_catalog.regclass) \
        FROM t JOIN pg_catalog.pg_constraint con ON con.conrelid = t.oid AND con.contype = 'f' AND con.conparentid = 0::pg_catalog.oid \
        WHERE EXISTS (SELECT FROM pg_catalog.pg_index twin WHERE twin.indrelid = con.confrelid AND twin.indexrelid < con.conindid AND ",
    may_hang!(),
    ") \
    UNION ALL SELECT pg_catalog.format('%s depends on it', pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid)) \
        FROM t JOIN pg_catalog.pg_type y ON y.oid = t.reltype \
        JOIN pg_catalog.pg_depend d ON d.refobjid IN (t.oid, y.oid, y.typarray) \
            OR d.refobjid IN (SELECT oid FROM own) \
            OR (d.refclassid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid \
                AND d.refobjid IN (SELECT k.oid FROM pg_catalog.pg_constraint k WHERE k.conrelid = t.oid)) \
        WHERE d.objid NOT IN (y.oid, y.typarray) AND NOT EXISTS (SELECT FROM own WHERE own.oid = d.objid) \
          AND NOT (d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.objid IN (t.reltoastrelid, t.oid)) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_type z JOIN own ON own.oid = z.typrelid WHERE z.oid = d.objid) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_attrdef e JOIN pg_catalog.pg_class r ON r.oid = e.adrelid \
                          WHERE e.oid = d.objid AND (r.oid = t.oid OR pg_catalog.starts_with(r.relname::pg_catalog.text, 'howdah_new_'))) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.oid = d.objid AND k.conrelid = t.oid) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.oid = d.objid AND k.confrelid = t.oid) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.oid = d.objid AND (g.tgrelid = t.oid OR g.tgisinternal)) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.oid = d.objid AND p.polrelid = t.oid) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.oid = d.objid AND r.ev_class = t.oid) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class v ON v.oid = r.ev_class \
                          WHERE r.oid = d.objid AND r.ev_type = '1' AND v.relkind = 'v' \
                            AND pg_catalog.pg_has_role(v.relowner, 'USAGE')) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_publication_rel r WHERE r.oid = d.objid AND r.prrelid = t.oid) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext e WHERE e.oid = d.objid AND e.stxrelid = t.oid)"
);
