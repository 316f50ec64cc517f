//! The questions to the catalog. `$1` is the table's OID. They are asked under an empty `search_path`, so
//! that expressions come back with all names in full.

use crate::tree::tree_of;

/// Columns: type, NOT NULL, default, generation expression, whether a sequence fills it, what columns it is
/// made from, whether it is computed only when it is read, the characters that it has room for.
pub(super) const COLUMNS_SQL: &str = "\
    SELECT a.attname::pg_catalog.text, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, \
           CASE WHEN a.attgenerated = '' \
                THEN coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), pg_catalog.pg_get_expr(t.typdefaultbin, 0)) END, \
           CASE WHEN a.attgenerated <> '' THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid) END, \
           a.attidentity <> '' OR EXISTS ( \
               SELECT FROM pg_catalog.pg_depend p JOIN pg_catalog.pg_class s ON s.oid = p.refobjid AND s.relkind = 'S' \
               WHERE p.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND p.objid = d.oid \
                 AND p.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid), \
           ARRAY(SELECT b.attname::pg_catalog.text FROM pg_catalog.pg_depend p \
                 JOIN pg_catalog.pg_attribute b ON b.attrelid = a.attrelid AND b.attnum = p.refobjsubid \
                 WHERE p.refobjid = a.attrelid AND p.refobjsubid NOT IN (0, a.attnum) \
                   AND ((p.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND p.objid = d.oid) \
                        OR (p.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND p.objid = a.attrelid \
                            AND p.objsubid = a.attnum))), \
           a.attgenerated = 'v', \
           CASE WHEN coalesce(nullif(t.typbasetype, 0::pg_catalog.oid), t.oid) \
                     IN ('pg_catalog.varchar'::pg_catalog.regtype::pg_catalog.oid, 'pg_catalog.bpchar'::pg_catalog.regtype::pg_catalog.oid) \
                THEN nullif(CASE t.typtype WHEN 'd' THEN t.typtypmod ELSE a.atttypmod END, -1) - 4 END \
    FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

/// CHECK constraints: name, expression, columns.
pub(super) const CHECKS_SQL: &str = "\
    SELECT c.conname::pg_catalog.text, pg_catalog.pg_get_expr(c.conbin, c.conrelid), \
           ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)) \
    FROM pg_catalog.pg_constraint c \
    WHERE c.conrelid = $1 AND c.contype = 'c' \
      AND coalesce((pg_catalog.to_jsonb(c) ->> 'conenforced'::pg_catalog.text)::pg_catalog.bool, true) \
    ORDER BY c.conname";

/// The operators of an index `i` of access method `m` with this strategy number of B-trees, one for each part
/// of the key.
macro_rules! operators {
    ($strategy:literal) => {
        concat!(
            "ARRAY(SELECT (SELECT pg_catalog.format('OPERATOR(%I.%s)', n.nspname, o.oprname) \
                          FROM pg_catalog.pg_opclass s \
                          JOIN pg_catalog.pg_amop p ON p.amopfamily = s.opcfamily AND p.amoplefttype = s.opcintype \
                              AND p.amoprighttype = s.opcintype AND p.amopstrategy = ",
            $strategy,
            " JOIN pg_catalog.pg_operator o ON o.oid = p.amopopr \
                          JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace \
                          WHERE s.oid = i.indclass[k.no - 1] AND s.opcmethod = m.oid) \
                  FROM pg_catalog.generate_series(1, i.indnkeyatts) k (no) ORDER BY k.no)"
        )
    };
}

/// Unique indexes: name, that of the constraint, access method, predicate, NULLS NOT DISTINCT, expressions of
/// the key, their equality, their collations, all columns they are made from, whether values may be the same
/// though their bytes are others, WITHOUT OVERLAPS, whether some column has another collation than in the
/// table, and the order of the key's expressions.
pub(super) const UNIQUES_SQL: &str = concat!(
    "\
    SELECT x.relname::pg_catalog.text, c.conname::pg_catalog.text, m.amname::pg_catalog.text, \
           pg_catalog.pg_get_expr(i.indpred, i.indrelid), \
           coalesce((pg_catalog.to_jsonb(i) ->> 'indnullsnotdistinct'::pg_catalog.text)::pg_catalog.bool, false), \
           ARRAY(SELECT pg_catalog.pg_get_indexdef(i.indexrelid, k.no, false) \
                 FROM pg_catalog.generate_series(1, i.indnkeyatts) k (no) ORDER BY k.no), \
           ",
    operators!(3),
    ", \
           ARRAY(SELECT (SELECT pg_catalog.format('%I.%I', n.nspname, l.collname) \
                         FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace \
                         WHERE l.oid = i.indcollation[k.no - 1]) \
                 FROM pg_catalog.generate_series(1, i.indnkeyatts) k (no) ORDER BY k.no), \
           ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indrelid \
                 AND (a.attnum = ANY (i.indkey) OR EXISTS ( \
                     SELECT FROM pg_catalog.pg_depend p \
                     WHERE p.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND p.objid = i.indexrelid \
                       AND p.refobjid = i.indrelid AND p.refobjsubid = a.attnum))), \
           EXISTS (SELECT FROM pg_catalog.pg_collation l \
                   WHERE l.oid = ANY (i.indcollation) AND NOT l.collisdeterministic), false, \
           EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) k (no) \
                   JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.no] \
                   WHERE a.attcollation <> i.indcollation[k.no]), \
           ",
    operators!(1),
    " \
    FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    JOIN pg_catalog.pg_am m ON m.oid = x.relam \
    LEFT JOIN pg_catalog.pg_constraint c ON c.conindid = i.indexrelid AND c.conrelid = i.indrelid \
        AND c.contype IN ('p', 'u') \
    WHERE i.indrelid = $1 AND i.indisunique AND NOT i.indisexclusion AND i.indislive AND i.indisready \
    ORDER BY i.indisprimary DESC, x.relname"
);

/// Other indexes that compute something from a row, in the columns of [`UNIQUES_SQL`]; nothing is equal in
/// them.
pub(super) const COMPUTED_INDEXES_SQL: &str = "\
    SELECT x.relname::pg_catalog.text, NULL::pg_catalog.text, m.amname::pg_catalog.text, \
           pg_catalog.pg_get_expr(i.indpred, i.indrelid), false, \
           ARRAY(SELECT pg_catalog.pg_get_indexdef(i.indexrelid, k.no, false) \
                 FROM pg_catalog.generate_series(1, i.indnkeyatts) k (no) ORDER BY k.no), \
           pg_catalog.array_fill(NULL::pg_catalog.text, ARRAY[i.indnkeyatts::pg_catalog.int4]), \
           pg_catalog.array_fill(NULL::pg_catalog.text, ARRAY[i.indnkeyatts::pg_catalog.int4]), \
           ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indrelid \
                 AND (a.attnum = ANY (i.indkey) OR EXISTS ( \
                     SELECT FROM pg_catalog.pg_depend p \
                     WHERE p.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND p.objid = i.indexrelid \
                       AND p.refobjid = i.indrelid AND p.refobjsubid = a.attnum))), \
           false, false, false, NULL::pg_catalog.text[] \
    FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    JOIN pg_catalog.pg_am m ON m.oid = x.relam \
    WHERE i.indrelid = $1 AND NOT i.indisunique AND NOT i.indisexclusion AND i.indislive AND i.indisready \
      AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL) \
    ORDER BY x.relname";

/// Exclusion constraints and keys WITHOUT OVERLAPS, in the columns of [`UNIQUES_SQL`], with their operators
/// in place of equalities.
pub(super) const EXCLUSIONS_SQL: &str = "\
    SELECT x.relname::pg_catalog.text, c.conname::pg_catalog.text, m.amname::pg_catalog.text, \
           pg_catalog.pg_get_expr(i.indpred, i.indrelid), false, \
           ARRAY(SELECT pg_catalog.pg_get_indexdef(i.indexrelid, k.no, false) \
                 FROM pg_catalog.generate_series(1, i.indnkeyatts) k (no) ORDER BY k.no), \
           ARRAY(SELECT pg_catalog.format('OPERATOR(%I.%s)', n.nspname, o.oprname) \
                 FROM pg_catalog.unnest(c.conexclop) WITH ORDINALITY k (op, no) \
                 JOIN pg_catalog.pg_operator o ON o.oid = k.op \
                 JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace ORDER BY k.no), \
           ARRAY(SELECT (SELECT pg_catalog.format('%I.%I', n.nspname, l.collname) \
                         FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace \
                         WHERE l.oid = i.indcollation[k.no - 1]) \
                 FROM pg_catalog.generate_series(1, i.indnkeyatts) k (no) ORDER BY k.no), \
           ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indrelid \
                 AND (a.attnum = ANY (i.indkey) OR EXISTS ( \
                     SELECT FROM pg_catalog.pg_depend p \
                     WHERE p.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND p.objid = i.indexrelid \
                       AND p.refobjid = i.indrelid AND p.refobjsubid = a.attnum))), \
           true, c.contype IN ('p', 'u'), false, NULL::pg_catalog.text[] \
    FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    JOIN pg_catalog.pg_am m ON m.oid = x.relam \
    JOIN pg_catalog.pg_constraint c ON c.conindid = i.indexrelid AND c.conrelid = i.indrelid AND c.conexclop IS NOT NULL \
    WHERE i.indrelid = $1 AND i.indisexclusion AND i.indislive AND i.indisready \
    ORDER BY x.relname";

/// Foreign keys: name, the table they lead to, whether it is partitioned, MATCH, own columns, columns there,
/// equalities, collations there, PERIOD, whether its trigger fires for rows that come. Those that the server
/// keeps for the partitions of the other table are left out.
pub(super) const FOREIGN_SQL: &str = "\
    SELECT c.conname::pg_catalog.text, c.confrelid, n.nspname::pg_catalog.text, r.relname::pg_catalog.text, \
           r.relkind = 'p', c.confmatchtype::pg_catalog.text, \
           ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.unnest(c.conkey) WITH ORDINALITY k (attnum, no) \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum ORDER BY k.no), \
           ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.unnest(c.confkey) WITH ORDINALITY k (attnum, no) \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum ORDER BY k.no), \
           ARRAY(SELECT pg_catalog.format('OPERATOR(%I.%s)', s.nspname, o.oprname) \
                 FROM pg_catalog.unnest(c.conpfeqop) WITH ORDINALITY k (op, no) \
                 JOIN pg_catalog.pg_operator o ON o.oid = k.op \
                 JOIN pg_catalog.pg_namespace s ON s.oid = o.oprnamespace ORDER BY k.no), \
           ARRAY(SELECT (SELECT pg_catalog.format('%I.%I', s.nspname, l.collname) \
                         FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace s ON s.oid = l.collnamespace \
                         WHERE l.oid = a.attcollation) \
                 FROM pg_catalog.unnest(c.confkey) WITH ORDINALITY k (attnum, no) \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum ORDER BY k.no), \
           coalesce((pg_catalog.to_jsonb(c) ->> 'conperiod'::pg_catalog.text)::pg_catalog.bool, false), \
           NOT EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgconstraint = c.oid AND g.tgrelid = c.conrelid \
               AND g.tgtype & 4::pg_catalog.int2 = 4 AND g.tgenabled <> 'A' \
               AND g.tgenabled <> CASE pg_catalog.current_setting('session_replication_role') \
                                  WHEN 'replica' THEN 'R'::pg_catalog.\"char\" ELSE 'O'::pg_catalog.\"char\" END) \
    FROM pg_catalog.pg_constraint c \
    JOIN pg_catalog.pg_class r ON r.oid = c.confrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace \
    WHERE c.conrelid = $1 AND c.contype = 'f' \
      AND coalesce((pg_catalog.to_jsonb(c) ->> 'conenforced'::pg_catalog.text)::pg_catalog.bool, true) \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint p WHERE p.oid = c.conparentid AND p.conrelid = c.conrelid) \
    ORDER BY c.conname";

/// Partitions that rows may go to: what each takes, and which columns are NOT NULL there and not in the
/// table.
pub(super) const LEAVES_SQL: &str = concat!(
    tree_of!("$1::pg_catalog.oid"),
    "SELECT pg_catalog.pg_get_partition_constraintdef(c.oid), \
            ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a \
                  JOIN pg_catalog.pg_attribute r ON r.attrelid = $1 AND r.attname = a.attname \
                  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND NOT r.attnotnull) \
     FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid \
     WHERE c.relkind <> 'p' AND c.oid <> $1 AND NOT tree.is_detached ORDER BY c.oid"
);

/// The table itself: whether it is partitioned, what it takes as a partition, whether policies apply to this
/// role, whether a trigger may change rows before they are stored, and whether one may change those that are
/// there or a rule any.
pub(super) const TABLE_SQL: &str = concat!(
    "SELECT c.relkind = 'p', pg_catalog.pg_get_partition_constraintdef(c.oid), pg_catalog.row_security_active(c.oid), \
           EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgtype & 7::pg_catalog.int2 = 7 AND g.tgenabled IN ('O', 'A') \
                   AND g.tgrelid IN (",
    tree_of!("c.oid"),
    "SELECT oid FROM tree)), \
           c.relhasrules OR EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgtype & 19::pg_catalog.int2 = 19 AND g.tgenabled IN ('O', 'A') \
                   AND g.tgrelid IN (",
    tree_of!("c.oid"),
    "SELECT oid FROM tree)), \
           (SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_partitioned_table t \
            JOIN pg_catalog.pg_attribute a ON a.attrelid = t.partrelid AND a.attnum = t.partattrs[0] \
            WHERE t.partrelid = c.oid AND t.partstrat = 'r' AND t.partnatts = 1 AND a.attnum > 0) \
    FROM pg_catalog.pg_class c WHERE c.oid = $1"
);

/// What no query tells: what it is, and its name.
pub(super) const OTHERS_SQL: &str = concat!(
    tree_of!("$1::pg_catalog.oid"),
    "SELECT 'constraint', c.conname::pg_catalog.text, false, c.conrelid::pg_catalog.regclass::pg_catalog.text \
    FROM pg_catalog.pg_constraint c \
    WHERE c.conrelid IN (SELECT oid FROM tree WHERE level > 0) \
      AND c.contype IN ('c', 'f', 'p', 'u', 'x') AND c.coninhcount = 0 AND c.conparentid = 0::pg_catalog.oid \
    UNION ALL \
    SELECT 'unique index', x.relname::pg_catalog.text, false, i.indrelid::pg_catalog.regclass::pg_catalog.text \
    FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    WHERE i.indrelid IN (SELECT oid FROM tree WHERE level > 0) AND i.indisunique \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = i.indexrelid) \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint c WHERE c.conindid = i.indexrelid AND c.contype IN ('p', 'u')) \
    UNION ALL \
    SELECT 'trigger', g.tgname::pg_catalog.text, g.tgrelid = $1, g.tgrelid::pg_catalog.regclass::pg_catalog.text \
    FROM pg_catalog.pg_trigger g \
    WHERE NOT g.tgisinternal AND g.tgenabled IN ('O', 'A') AND g.tgtype & 4::pg_catalog.int2 = 4 \
      AND (g.tgrelid = $1 OR (g.tgrelid IN (SELECT oid FROM tree) \
                              AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger u WHERE u.tgrelid = $1 AND u.tgname = g.tgname))) \
    ORDER BY 1, 2, 4"
);
