//! Rights that a replacement needs at its end, when all rows are in: asked for beforehand, each with the
//! GRANT that helps.

/// Each row is a reason and, if one helps, a GRANT: none of a superuser's role. `$1` and `$2` are schema and
/// name of the table. The new table is made by this role and then given to the owner of the old one, who has
/// to have CREATE on the schema for that; what hangs on it is made by this role, too.
pub(super) const RIGHTS_SQL: &str = "\
    WITH t AS (SELECT c.*, n.nspname, pg_catalog.pg_get_userbyid(c.relowner) AS owner \
               FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = $1 AND c.relname = $2), \
    me AS (SELECT r.oid, r.rolname, v.num, CASE WHEN v.num >= 160000 THEN 'SET' ELSE 'MEMBER' END AS setting \
           FROM pg_catalog.pg_roles r, pg_catalog.int4(pg_catalog.current_setting('server_version_num')) AS v (num) \
           WHERE r.rolname = current_user AND NOT r.rolsuper), \
    owners AS (SELECT t.relowner AS oid, t.owner, t.relnamespace AS schema_oid, t.nspname FROM t \
               UNION SELECT e.stxowner, pg_catalog.pg_get_userbyid(e.stxowner), n.oid, n.nspname \
               FROM t JOIN pg_catalog.pg_statistic_ext e ON e.stxrelid = t.oid \
               JOIN pg_catalog.pg_namespace n ON n.oid = e.stxnamespace), \
    made AS (SELECT n.oid, n.nspname, pg_catalog.format('the statistics %s', e.stxname) AS what \
             FROM t JOIN pg_catalog.pg_statistic_ext e ON e.stxrelid = t.oid \
             JOIN pg_catalog.pg_namespace n ON n.oid = e.stxnamespace \
             UNION SELECT n.oid, n.nspname, pg_catalog.format('the view %s', v.relname) \
             FROM t JOIN pg_catalog.pg_type y ON y.oid = t.reltype \
             JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid \
                 AND (d.refobjid IN (t.oid, y.oid, y.typarray) \
                      OR d.refobjid IN (SELECT k.oid FROM pg_catalog.pg_constraint k WHERE k.conrelid = t.oid)) \
             JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid \
             JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relkind = 'v' \
             JOIN pg_catalog.pg_namespace n ON n.oid = v.relnamespace) \
    SELECT 'it belongs to another role', \
           CASE WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid = t.relowner AND r.rolsuper) THEN \
               pg_catalog.format(CASE WHEN me.num >= 160000 THEN 'GRANT %I TO %I WITH INHERIT TRUE' \
                                      WHEN pg_catalog.pg_has_role(t.relowner, 'MEMBER') THEN 'ALTER ROLE %2$I INHERIT' ELSE 'GRANT %I TO %I' END, \
                                 t.owner, me.rolname) END \
    FROM t, me WHERE NOT pg_catalog.pg_has_role(t.relowner, 'USAGE') \
    UNION ALL SELECT pg_catalog.format('this role may not CREATE in the schema %s', t.nspname), \
           pg_catalog.format('GRANT CREATE ON SCHEMA %I TO %I', t.nspname, me.rolname) \
    FROM t, me WHERE NOT pg_catalog.has_schema_privilege(t.relnamespace, 'CREATE') \
    UNION ALL SELECT pg_catalog.format('this role may not SET ROLE to the owner %s', o.owner), \
           CASE WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid = o.oid AND r.rolsuper) THEN \
               pg_catalog.format(CASE WHEN me.num >= 160000 THEN 'GRANT %I TO %I WITH SET TRUE' ELSE 'GRANT %I TO %I' END, \
                                 o.owner, me.rolname) END \
    FROM owners o, me WHERE o.oid <> me.oid AND NOT pg_catalog.pg_has_role(o.oid, me.setting) \
    UNION ALL SELECT pg_catalog.format('the owner %s may not CREATE in the schema %s', o.owner, o.nspname), \
           pg_catalog.format('GRANT CREATE ON SCHEMA %I TO %I', o.nspname, o.owner) \
    FROM owners o, me WHERE o.oid <> me.oid AND NOT pg_catalog.has_schema_privilege(o.oid, o.schema_oid, 'CREATE') \
    UNION ALL SELECT pg_catalog.format('this role may not CREATE in the schema %s of %s', m.nspname, m.what), \
           pg_catalog.format('GRANT CREATE ON SCHEMA %I TO %I', m.nspname, me.rolname) \
    FROM made m, me WHERE NOT pg_catalog.has_schema_privilege(m.oid, 'CREATE') \
    UNION ALL SELECT pg_catalog.format('this role may not EXECUTE the function of the trigger %s', g.tgname), \
           pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %I', g.tgfoid::pg_catalog.regprocedure, me.rolname) \
    FROM me, t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal \
    WHERE NOT pg_catalog.has_function_privilege(g.tgfoid, 'EXECUTE') \
    UNION ALL SELECT pg_catalog.format('this role lacks REFERENCES on %s, which the foreign key %s refers to', \
                                       f.confrelid::pg_catalog.regclass, f.conname), \
           pg_catalog.format('GRANT REFERENCES ON %s TO %I', f.confrelid::pg_catalog.regclass, me.rolname) \
    FROM me, t JOIN pg_catalog.pg_constraint f ON f.conrelid = t.oid AND f.contype = 'f' AND f.conparentid = 0::pg_catalog.oid \
    WHERE NOT pg_catalog.has_table_privilege(f.confrelid, 'REFERENCES') AND EXISTS ( \
        SELECT FROM pg_catalog.unnest(f.confkey) k WHERE NOT pg_catalog.has_column_privilege(f.confrelid, k, 'REFERENCES')) \
    UNION ALL SELECT pg_catalog.format('this role may not CREATE in the tablespace %s', s.spcname), \
           pg_catalog.format('GRANT CREATE ON TABLESPACE %I TO %I', s.spcname, me.rolname) \
    FROM me, t JOIN pg_catalog.pg_tablespace s ON s.oid = t.reltablespace \
    WHERE NOT pg_catalog.has_tablespace_privilege(s.oid, 'CREATE') \
    UNION ALL SELECT pg_catalog.format('the sequence of the identity column %s is of another type than the column', a.attname), NULL \
    FROM t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attidentity <> '' AND NOT a.attisdropped \
    JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.refobjsubid = a.attnum AND d.deptype = 'i' \
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    JOIN pg_catalog.pg_sequence q ON q.seqrelid = d.objid AND q.seqtypid <> a.atttypid";
