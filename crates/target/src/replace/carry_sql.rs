//! The statements that give a new table what the old one has, written by the server from its catalogs. All
//! take schema and name of the old table as `$1` and `$2` and the new one's name as `$3`, under an empty
//! `search_path`.

use crate::build::compared_by_libc;

/// The beginning of each: the old table, and the name that the new one is going to have.
pub(super) const OLD_SQL: &str = "\
    WITH t AS (SELECT c.*, pg_catalog.format('%I.%I', n.nspname, c.relname) AS named, \
                      pg_catalog.format('%I.%I', n.nspname, $3::pg_catalog.text) AS new, n.nspname \
               FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = $1 AND c.relname = $2) ";

/// Makes the new table. Indexes come behind the rows; what can be changed later,
/// [`super::likeness_sql::FOLLOW_SQL`] adds.
pub(super) const CREATE_SQL: &str = "\
    SELECT pg_catalog.format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING INDEXES EXCLUDING STATISTICS EXCLUDING IDENTITY) \
                              USING %I%s', t.new, t.named, m.amname, ' TABLESPACE ' || pg_catalog.quote_ident(s.spcname)) \
    FROM t JOIN pg_catalog.pg_am m ON m.oid = t.relam \
    LEFT JOIN pg_catalog.pg_tablespace s ON s.oid = t.reltablespace";

/// Takes from the new table what new tables get by default privileges: before it has the rights and policies
/// of the old one, nobody is to see its rows.
pub(super) const CLOSE_SQL: &str = "\
    SELECT pg_catalog.format('REVOKE ALL ON TABLE %s FROM %s', t.new, \
                             CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::pg_catalog.text END) \
    FROM t JOIN pg_catalog.pg_class w ON w.oid = pg_catalog.to_regclass(t.new)::pg_catalog.oid, \
        LATERAL (SELECT DISTINCT grantee FROM pg_catalog.aclexplode(w.relacl)) a \
    WHERE a.grantee <> w.relowner";

/// Names of indexes of the new table until they take those of the old one: by definition, so that a further
/// run knows them.
macro_rules! index_name {
    () => {
        "pg_catalog.format('%s_%s', $3::pg_catalog.text, pg_catalog.left(pg_catalog.md5(pg_catalog.pg_get_indexdef(i.indexrelid)), 12))"
    };
}

/// Builds indexes, those first that take longest, and foreign keys that the new table has not yet, and
/// validates these: the statement, whether it is of an index (1), a foreign key (2) or a validation (3), its
/// name, whether strings of it are compared by the C library, its OID, and how the definition of the old
/// index and that of the new one begin. Writers of the table that is referred to wait while a foreign key is
/// added, not while it is validated.
pub(super) const BUILD_SQL: &str = concat!(
    "SELECT head.new || pg_catalog.substr(pg_catalog.pg_get_indexdef(i.indexrelid), 1 + pg_catalog.length(head.old)), \
           1, x.relname::pg_catalog.text, am.amname = 'btree' AND ",
    compared_by_libc!(),
    ", i.indexrelid, head.old, head.new \
    FROM t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    JOIN pg_catalog.pg_am am ON am.oid = x.relam, \
        LATERAL (SELECT pg_catalog.format('CREATE %sINDEX %I ON %s ', unique_sql, x.relname, t.named) AS old, \
                        pg_catalog.format('CREATE %sINDEX %I ON %s ', unique_sql, ",
    index_name!(),
    ", t.new) AS new \
                 FROM (SELECT CASE WHEN i.indisunique THEN 'UNIQUE ' END AS unique_sql) u) head \
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_index j JOIN pg_catalog.pg_class y ON y.oid = j.indexrelid \
                      WHERE j.indrelid = pg_catalog.to_regclass(t.new)::pg_catalog.oid AND y.relname::pg_catalog.text = ",
    index_name!(),
    ") \
    UNION ALL \
    SELECT pg_catalog.format(step.sql, t.new, f.conname, pg_catalog.pg_get_constraintdef(f.oid)), step.no, \
           f.conname::pg_catalog.text, false, f.oid, '', '' \
    FROM t JOIN pg_catalog.pg_constraint f ON f.conrelid = t.oid AND f.contype = 'f' AND f.conparentid = 0::pg_catalog.oid, \
        (VALUES (2, 'ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID'), (3, 'ALTER TABLE %s VALIDATE CONSTRAINT %I')) AS step (no, sql) \
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = pg_catalog.to_regclass(t.new)::pg_catalog.oid \
                      AND k.conname = f.conname AND k.contype = 'f' AND k.conparentid = 0::pg_catalog.oid AND (step.no = 2 OR k.convalidated) \
                      AND pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(k.oid), ' NOT VALID$', '') = pg_catalog.pg_get_constraintdef(f.oid)) \
    ORDER BY 2, 4 DESC, 3"
);

/// Drops indexes and foreign keys of the new table that the old one has no more, or has otherwise.
pub(super) const SURPLUS_SQL: &str = concat!(
    "SELECT pg_catalog.format('DROP INDEX IF EXISTS %I.%I', t.nspname, y.relname), 1, y.oid \
    FROM t JOIN pg_catalog.pg_index j ON j.indrelid = pg_catalog.to_regclass(t.new)::pg_catalog.oid \
    JOIN pg_catalog.pg_class y ON y.oid = j.indexrelid \
    WHERE y.relname::pg_catalog.text NOT IN (SELECT ",
    index_name!(),
    " FROM pg_catalog.pg_index i WHERE i.indrelid = t.oid) \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I', t.new, k.conname), 2, k.oid \
    FROM t JOIN pg_catalog.pg_constraint k ON k.conrelid = pg_catalog.to_regclass(t.new)::pg_catalog.oid AND k.contype = 'f' \
        AND k.conparentid = 0::pg_catalog.oid \
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.conrelid = t.oid AND f.contype = 'f' \
        AND f.conname = k.conname AND f.conparentid = 0::pg_catalog.oid \
        AND pg_catalog.pg_get_constraintdef(f.oid) = pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(k.oid), ' NOT VALID$', '')) \
    ORDER BY 2, 3"
);

/// The views that are written anew when the old table is gone: schema, name, and a statement that changes
/// nothing and locks the view as that will.
pub(super) const VIEWS_SQL: &str = "\
    SELECT n.nspname, v.relname, pg_catalog.format('ALTER VIEW %I.%I OWNER TO %s', n.nspname, v.relname, v.relowner::pg_catalog.regrole) \
    FROM pg_catalog.pg_class v JOIN pg_catalog.pg_namespace n ON n.oid = v.relnamespace WHERE v.relkind = 'v' AND v.oid IN ( \
        SELECT r.ev_class FROM t JOIN pg_catalog.pg_type y ON y.oid = t.reltype \
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid \
            AND (d.refobjid IN (t.oid, y.oid, y.typarray) OR d.refobjid IN (SELECT k.oid FROM pg_catalog.pg_constraint k WHERE k.conrelid = t.oid)) \
        JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid) \
    ORDER BY v.oid";

/// Moves the old table aside, puts the new one in its place, and drops the old one when nothing depends on it
/// any more: views are written anew, which keeps all that they have. Sequences are kept apart meanwhile, also
/// from new tables of jobs that were killed, which cannot go on once this is another table; identity columns
/// get theirs made anew, without what default privileges would give, where the old one stands, which no
/// function but the sequence itself tells before a value was drawn. What the server makes of a foreign key
/// for each partition of the table that it refers to has a name too, which errors tell; before PostgreSQL 18
/// it stays NOT VALID when the foreign key is validated, which no dump tells and nothing goes by.
pub(super) const SWAP_SQL: &str = concat!(
    ", of_partitions AS (SELECT k.oid, k.conrelid, k.conname, d.definition, \
            pg_catalog.row_number() OVER (PARTITION BY k.conrelid, d.definition ORDER BY k.oid) AS no \
        FROM t JOIN pg_catalog.pg_constraint k ON k.conrelid IN (t.oid, pg_catalog.to_regclass(t.new)::pg_catalog.oid) \
            AND k.contype = 'f' AND k.conparentid <> 0::pg_catalog.oid, \
            LATERAL (SELECT pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(k.oid), ' NOT VALID$', '') AS definition) d) \
    SELECT pg_catalog.format('ALTER SEQUENCE %s OWNED BY NONE', s.oid::pg_catalog.regclass), 1, 0::pg_catalog.int8 \
    FROM t JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.deptype = 'a' \
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S' \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', e.adrelid::pg_catalog.regclass, a.attname), 1, a.attnum \
    FROM t JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.deptype = 'i' \
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    JOIN pg_catalog.pg_depend x ON x.refobjid = d.objid AND x.refclassid = d.classid \
        AND x.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid \
    JOIN pg_catalog.pg_attrdef e ON e.oid = x.objid \
    JOIN pg_catalog.pg_class r ON r.oid = e.adrelid AND pg_catalog.starts_with(r.relname::pg_catalog.text, 'howdah_new_') \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = e.adrelid AND a.attnum = e.adnum \
    UNION ALL SELECT pg_catalog.format('SELECT pg_catalog.set_config(''howdah.identity_%s'', pg_catalog.format(''%%s %%s'', last_value, \
            is_called), true) FROM %s', a.attnum, d.objid::pg_catalog.regclass), 1, a.attnum \
    FROM t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attidentity <> '' AND NOT a.attisdropped \
    JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.refobjsubid = a.attnum AND d.deptype = 'i' \
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    UNION ALL SELECT pg_catalog.format('DROP STATISTICS %I.%I', n.nspname, e.stxname), 2, 0 \
    FROM t JOIN pg_catalog.pg_statistic_ext e ON e.stxrelid = t.oid JOIN pg_catalog.pg_namespace n ON n.oid = e.stxnamespace \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', t.named, a.attname), 2, a.attnum \
    FROM t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attidentity <> '' AND NOT a.attisdropped \
    UNION ALL SELECT pg_catalog.format('ALTER INDEX %I.%I RENAME TO %I', t.nspname, x.relname, ",
    index_name!(),
    " || '_old'), 2, 0 \
    FROM t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s RENAME TO %I', t.named, $3::pg_catalog.text || '_old'), 2, 1000000 FROM t \
    UNION ALL SELECT pg_catalog.format('DROP TABLE %I.%I', t.nspname, $3::pg_catalog.text || '_old'), 20, 0 FROM t \
    UNION ALL SELECT pg_catalog.format('CREATE OR REPLACE VIEW %s%s AS %s', v.oid::pg_catalog.regclass, \
            ' WITH (' || pg_catalog.array_to_string(v.reloptions, ', ') || ')', pg_catalog.pg_get_viewdef(v.oid)), 19, v.oid \
    FROM pg_catalog.pg_class v WHERE v.relkind = 'v' AND v.oid IN ( \
        SELECT r.ev_class FROM t JOIN pg_catalog.pg_type y ON y.oid = t.reltype \
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid \
            AND (d.refobjid IN (t.oid, y.oid, y.typarray) OR d.refobjid IN (SELECT k.oid FROM pg_catalog.pg_constraint k WHERE k.conrelid = t.oid)) \
        JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid) \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s RENAME TO %I', t.new, t.relname), 3, 0 FROM t \
    UNION ALL SELECT pg_catalog.format('ALTER INDEX %I.%I RENAME TO %I', t.nspname, ",
    index_name!(),
    ", x.relname), 4, 0 \
    FROM t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I%s%s', t.named, k.conname, \
            CASE k.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, k.conname, \
            CASE WHEN k.condeferrable THEN ' DEFERRABLE' END, CASE WHEN k.condeferred THEN ' INITIALLY DEFERRED' END), 5, k.oid \
    FROM t JOIN pg_catalog.pg_constraint k ON k.conrelid = t.oid AND k.contype IN ('p', 'u') \
    UNION ALL SELECT pg_catalog.format('ALTER SEQUENCE %s OWNED BY %s.%I', s.oid::pg_catalog.regclass, t.named, a.attname), 6, 0 \
    FROM t JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.deptype = 'a' \
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S' \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s START WITH %s \
            INCREMENT BY %s MINVALUE %s MAXVALUE %s CACHE %s%s); SELECT pg_catalog.setval(%L::pg_catalog.regclass, state[1]::pg_catalog.int8, \
                state[2]::pg_catalog.bool) FROM pg_catalog.string_to_array(pg_catalog.current_setting(''howdah.identity_%s''), '' '') state', \
            t.named, a.attname, CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, s.oid::pg_catalog.regclass, \
            q.seqstart, q.seqincrement, q.seqmin, q.seqmax, q.seqcache, CASE WHEN q.seqcycle THEN ' CYCLE' END, \
            s.oid::pg_catalog.regclass::pg_catalog.text, a.attnum), 7, a.attnum \
    FROM t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attidentity <> '' AND NOT a.attisdropped \
    JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.refobjsubid = a.attnum AND d.deptype = 'i' \
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_catalog.pg_sequence q ON q.seqrelid = s.oid \
    UNION ALL SELECT pg_catalog.format('REVOKE ALL ON SEQUENCE %s FROM %s; GRANT ALL ON SEQUENCE %1$s TO %3$s', d.objid::pg_catalog.regclass, \
            g.grantees, t.relowner::pg_catalog.regrole), 8, 0 \
    FROM t JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.refobjsubid > 0 AND d.deptype = 'i' \
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S', \
        LATERAL (SELECT pg_catalog.string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::pg_catalog.text END, \
                        ', ') AS grantees \
                 FROM pg_catalog.pg_default_acl f, pg_catalog.aclexplode(f.defaclacl || pg_catalog.acldefault('s', t.relowner)) a \
                 WHERE f.defaclobjtype = 'S' AND f.defaclrole = t.relowner AND f.defaclnamespace IN (0::pg_catalog.oid, s.relnamespace)) g \
    WHERE g.grantees IS NOT NULL \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s CLUSTER ON %I', t.named, x.relname), 8, 0 \
    FROM t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid AND i.indisclustered JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s REPLICA IDENTITY %s', t.named, CASE t.relreplident WHEN 'f' THEN 'FULL' \
            WHEN 'n' THEN 'NOTHING' ELSE (SELECT pg_catalog.format('USING INDEX %I', x.relname) FROM pg_catalog.pg_index i \
            JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = t.oid AND i.indisreplident) END), 8, 1 \
    FROM t WHERE t.relreplident <> 'd' \
    UNION ALL SELECT pg_catalog.pg_get_triggerdef(g.oid), 9, g.oid \
    FROM t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s %s TRIGGER %I', t.named, CASE g.tgenabled WHEN 'D' THEN 'DISABLE' \
            WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, g.tgname), 10, g.oid \
    FROM t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal AND g.tgenabled <> 'O' \
    UNION ALL SELECT pg_catalog.format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s', p.polname, t.named, \
            CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END, \
            CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END, \
            (SELECT pg_catalog.string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE r::pg_catalog.regrole::pg_catalog.text END, ', ') \
             FROM pg_catalog.unnest(p.polroles) r), \
            ' USING (' || pg_catalog.pg_get_expr(p.polqual, p.polrelid) || ')', \
            ' WITH CHECK (' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) || ')'), 11, p.oid \
    FROM t JOIN pg_catalog.pg_policy p ON p.polrelid = t.oid \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.named), 12, 0 FROM t WHERE t.relrowsecurity \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', t.named), 12, 1 FROM t WHERE t.relforcerowsecurity \
    UNION ALL SELECT pg_catalog.pg_get_statisticsobjdef(e.oid) || pg_catalog.format('; ALTER STATISTICS %I.%I OWNER TO %s', n.nspname, \
            e.stxname, e.stxowner::pg_catalog.regrole) || coalesce(pg_catalog.format('; ALTER STATISTICS %I.%I SET STATISTICS ', \
            n.nspname, e.stxname) || nullif((pg_catalog.to_jsonb(e) ->> 'stxstattarget'::pg_catalog.text)::pg_catalog.int4, -1), ''), 13, e.oid \
    FROM t JOIN pg_catalog.pg_statistic_ext e ON e.stxrelid = t.oid JOIN pg_catalog.pg_namespace n ON n.oid = e.stxnamespace \
    UNION ALL SELECT pg_catalog.format('COMMENT ON TABLE %s IS %L', t.named, pg_catalog.obj_description(t.oid, 'pg_class')), 14, 0 \
    FROM t WHERE pg_catalog.obj_description(t.oid, 'pg_class') IS NOT NULL \
    UNION ALL SELECT pg_catalog.format('COMMENT ON INDEX %I.%I IS %L', t.nspname, x.relname, pg_catalog.obj_description(x.oid, 'pg_class')), 14, 1 \
    FROM t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    WHERE pg_catalog.obj_description(x.oid, 'pg_class') IS NOT NULL \
    UNION ALL SELECT pg_catalog.format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, t.named, \
            pg_catalog.obj_description(k.oid, 'pg_constraint')), 14, 2 \
    FROM t JOIN pg_catalog.pg_constraint k ON k.conrelid = t.oid AND k.conparentid = 0::pg_catalog.oid \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', t.named, found.conname, k.conname), 15, k.oid \
    FROM t JOIN of_partitions k ON k.conrelid = t.oid \
    JOIN of_partitions found ON found.conrelid <> t.oid AND found.definition = k.definition AND found.no = k.no \
    WHERE found.conname <> k.conname \
    UNION ALL SELECT pg_catalog.format('COMMENT ON TRIGGER %I ON %s IS %L', g.tgname, t.named, pg_catalog.obj_description(g.oid, 'pg_trigger')), 14, 3 \
    FROM t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal \
    WHERE pg_catalog.obj_description(g.oid, 'pg_trigger') IS NOT NULL \
    UNION ALL SELECT pg_catalog.format('COMMENT ON POLICY %I ON %s IS %L', p.polname, t.named, pg_catalog.obj_description(p.oid, 'pg_policy')), 14, 4 \
    FROM t JOIN pg_catalog.pg_policy p ON p.polrelid = t.oid WHERE pg_catalog.obj_description(p.oid, 'pg_policy') IS NOT NULL \
    UNION ALL SELECT pg_catalog.format('COMMENT ON STATISTICS %I.%I IS %L', n.nspname, e.stxname, \
            pg_catalog.obj_description(e.oid, 'pg_statistic_ext')), 14, 5 \
    FROM t JOIN pg_catalog.pg_statistic_ext e ON e.stxrelid = t.oid JOIN pg_catalog.pg_namespace n ON n.oid = e.stxnamespace \
    WHERE pg_catalog.obj_description(e.oid, 'pg_statistic_ext') IS NOT NULL \
    UNION ALL SELECT pg_catalog.format('ALTER TABLE %s OWNER TO %s', t.named, t.relowner::pg_catalog.regrole), 3, 1 FROM t \
    UNION ALL SELECT pg_catalog.format('REVOKE ALL ON TABLE %s FROM %s', t.named, \
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::pg_catalog.text END), 16, 0 \
    FROM t JOIN pg_catalog.pg_class w ON w.oid = pg_catalog.to_regclass(t.new)::pg_catalog.oid, \
        LATERAL (SELECT DISTINCT grantee FROM pg_catalog.aclexplode(w.relacl) UNION \
                 SELECT t.relowner WHERE t.relacl IS NOT NULL) a \
    UNION ALL SELECT pg_catalog.format('GRANT %s ON TABLE %s TO %s%s', a.privilege_type, t.named, \
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::pg_catalog.text END, \
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END), 17, a.no \
    FROM t LEFT JOIN pg_catalog.pg_class w ON w.oid = pg_catalog.to_regclass(t.new)::pg_catalog.oid, \
        pg_catalog.aclexplode(coalesce(t.relacl, CASE WHEN w.relacl IS NOT NULL THEN pg_catalog.acldefault('r', t.relowner) END)) \
            WITH ORDINALITY AS a (grantor, grantee, privilege_type, is_grantable, no) \
    UNION ALL SELECT pg_catalog.format('GRANT %s (%I) ON TABLE %s TO %s%s', a.privilege_type, c.attname, t.named, \
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::pg_catalog.text END, \
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END), 18, c.attnum \
    FROM t JOIN pg_catalog.pg_attribute c ON c.attrelid = t.oid AND c.attacl IS NOT NULL AND NOT c.attisdropped, \
        pg_catalog.aclexplode(c.attacl) a \
    ORDER BY 2, 3"
);
