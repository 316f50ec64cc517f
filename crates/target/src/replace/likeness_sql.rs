//! What a table may have got since the new one was made like it: what says nothing about rows is taken along,
//! other things are told. Both take what [`super::carry_sql::OLD_SQL`] takes, which they follow.

/// Columns of both tables by their names, with what default each has or is to have: until the new table takes
/// its place, identity columns draw from the old one's sequences.
macro_rules! both {
    () => {
        ", n AS (SELECT c.* FROM t JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(t.new)::pg_catalog.oid), \
        pair AS (SELECT o.attname, o.attnum, pg_catalog.to_jsonb(o) AS old, pg_catalog.to_jsonb(w) AS found, \
                o.attoptions AS old_options, w.attoptions AS found_options, \
                pg_catalog.col_description(t.oid, o.attnum) AS old_comment, pg_catalog.col_description(n.oid, w.attnum) AS found_comment, \
                CASE WHEN o.attidentity = '' THEN pg_catalog.pg_get_expr(e.adbin, e.adrelid) \
                     ELSE pg_catalog.format('nextval(%L::regclass)', d.objid::pg_catalog.regclass) END AS old_default, \
                pg_catalog.pg_get_expr(f.adbin, f.adrelid) AS found_default \
            FROM t CROSS JOIN n \
            JOIN pg_catalog.pg_attribute o ON o.attrelid = t.oid AND o.attnum > 0 AND NOT o.attisdropped \
            JOIN pg_catalog.pg_attribute w ON w.attrelid = n.oid AND w.attname = o.attname AND NOT w.attisdropped \
            LEFT JOIN pg_catalog.pg_attrdef e ON e.adrelid = o.attrelid AND e.adnum = o.attnum \
            LEFT JOIN pg_catalog.pg_attrdef f ON f.adrelid = w.attrelid AND f.adnum = w.attnum \
            LEFT JOIN pg_catalog.pg_depend d ON d.refobjid = t.oid AND d.refobjsubid = o.attnum AND d.deptype = 'i' \
                AND o.attidentity <> '' AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid) "
    };
}

/// A default of the column is to be set or dropped.
macro_rules! other_default {
    () => {
        "old ->> 'attgenerated'::pg_catalog.text = '' AND found ->> 'attgenerated'::pg_catalog.text = '' \
             AND old_default IS DISTINCT FROM found_default"
    };
}

/// Gives the new table the storage parameters, statistics targets, column options, storage, compression,
/// defaults, comments and names of NOT NULL that the old one has and it has not; of defaults, those that are
/// no expressions of users.
pub(super) const FOLLOW_SQL: &str = concat!(
    both!(),
    ", parameters AS (SELECT '' AS prefix, t.reloptions AS old, n.reloptions AS found FROM t, n UNION ALL \
            SELECT 'toast.', x.reloptions, y.reloptions FROM t CROSS JOIN n JOIN pg_catalog.pg_class x ON x.oid = t.reltoastrelid \
            JOIN pg_catalog.pg_class y ON y.oid = n.reltoastrelid) \
    SELECT pg_catalog.format('ALTER TABLE %s SET (%s%I = %L)', t.new, prefix, pg_catalog.split_part(o, '=', 1), \
                             pg_catalog.substr(o, pg_catalog.strpos(o, '=') + 1)), 2, no \
    FROM t, parameters, pg_catalog.unnest(old) WITH ORDINALITY AS s (o, no) WHERE o <> ALL (coalesce(found, '{}')) \
    UNION ALL \
    SELECT pg_catalog.format('ALTER TABLE %s RESET (%s%I)', t.new, prefix, name), 1, 0 \
    FROM t, parameters, pg_catalog.unnest(found) o, pg_catalog.split_part(o, '=', 1) name \
    WHERE name NOT IN (SELECT pg_catalog.split_part(p, '=', 1) FROM pg_catalog.unnest(old) p) \
    UNION ALL \
    SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', t.new, attname, \
                             coalesce(old ->> 'attstattarget'::pg_catalog.text, '-1')), 2, attnum \
    FROM t, pair WHERE coalesce(old ->> 'attstattarget'::pg_catalog.text, '-1') <> coalesce(found ->> 'attstattarget'::pg_catalog.text, '-1') \
    UNION ALL \
    SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I RESET (%s)', t.new, attname, \
               (SELECT pg_catalog.string_agg(pg_catalog.split_part(o, '=', 1), ', ') FROM pg_catalog.unnest(found_options) o)), 1, attnum \
    FROM t, pair WHERE found_options <> old_options OR (found_options IS NOT NULL AND old_options IS NULL) \
    UNION ALL \
    SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I SET (%s)', t.new, attname, \
                             pg_catalog.array_to_string(old_options, ', ')), 2, attnum \
    FROM t, pair WHERE old_options IS NOT NULL AND old_options IS DISTINCT FROM found_options \
    UNION ALL \
    SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE %s', t.new, attname, CASE old ->> 'attstorage'::pg_catalog.text \
               WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END), 2, attnum \
    FROM t, pair WHERE old ->> 'attstorage'::pg_catalog.text <> found ->> 'attstorage'::pg_catalog.text \
    UNION ALL \
    SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION %s', t.new, attname, CASE old ->> 'attcompression'::pg_catalog.text \
               WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' ELSE 'default' END), 2, attnum \
    FROM t, pair WHERE old ->> 'attcompression'::pg_catalog.text <> found ->> 'attcompression'::pg_catalog.text \
    UNION ALL \
    SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I %s', t.new, attname, \
                             coalesce('SET DEFAULT pg_catalog.' || old_default, 'DROP DEFAULT')), \
           2, attnum \
    FROM t, pair WHERE (old ->> 'attidentity'::pg_catalog.text <> '' OR old_default IS NULL) AND ",
    other_default!(),
    " \
    UNION ALL \
    SELECT pg_catalog.format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', t.new, k.conname, c.conname), 2, attnum \
    FROM t CROSS JOIN n CROSS JOIN pair \
    JOIN pg_catalog.pg_constraint c ON c.conrelid = t.oid AND c.contype = 'n' AND c.conkey[1] = attnum \
    JOIN pg_catalog.pg_constraint k ON k.conrelid = n.oid AND k.contype = 'n' AND k.conkey[1] = (found ->> 'attnum'::pg_catalog.text)::pg_catalog.int2 \
    WHERE k.conname <> c.conname \
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint x WHERE x.conrelid = n.oid AND x.conname = c.conname) \
    UNION ALL \
    SELECT pg_catalog.format('COMMENT ON COLUMN %s.%I IS %L', t.new, attname, old_comment), 2, attnum \
    FROM t, pair WHERE old_comment IS DISTINCT FROM found_comment \
    ORDER BY 2, 3"
);

/// Gives the new table the defaults that the old one has. The server has written their expressions under an
/// empty `search_path`.
pub(super) const DEFAULTS_SQL: &str = concat!(
    both!(),
    "SELECT pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', t.new, attname, old_default) \
    FROM t, pair WHERE old ->> 'attidentity'::pg_catalog.text = '' AND old_default IS NOT NULL AND ",
    other_default!(),
    " ORDER BY attnum"
);

/// What the new table has otherwise than the old one, so that its rows may be others than they would be
/// there. NOT NULL goes by its column: pg_upgrade from a version before 18, where it had no name, gives it
/// one by the name of the table that it finds.
pub(super) const DIFFERENCES_SQL: &str = "\
    , both_of_them AS (SELECT t.oid FROM t UNION ALL SELECT pg_catalog.to_regclass(t.new) FROM t), \
    things AS ( \
        SELECT 'the column ' || a.attname AS what, pg_catalog.concat_ws(' ', \
               pg_catalog.lag(a.attname) OVER (PARTITION BY b.oid ORDER BY a.attnum), pg_catalog.format_type(a.atttypid, a.atttypmod), \
               a.attcollation, a.attnotnull, a.attgenerated, \
               CASE WHEN a.attgenerated <> '' THEN pg_catalog.pg_get_expr(e.adbin, e.adrelid) END) AS how \
        FROM both_of_them b JOIN pg_catalog.pg_attribute a ON a.attrelid = b.oid AND a.attnum > 0 AND NOT a.attisdropped \
        LEFT JOIN pg_catalog.pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum \
        UNION ALL SELECT 'the constraint ' || k.conname, pg_catalog.pg_get_constraintdef(k.oid) \
        FROM both_of_them b JOIN pg_catalog.pg_constraint k ON k.conrelid = b.oid AND k.contype = 'c' \
        UNION ALL SELECT 'the constraint NOT NULL of the column ' || a.attname, pg_catalog.pg_get_constraintdef(k.oid) \
        FROM both_of_them b JOIN pg_catalog.pg_constraint k ON k.conrelid = b.oid AND k.contype = 'n' \
        JOIN pg_catalog.pg_attribute a ON a.attrelid = b.oid AND a.attnum = k.conkey[1] \
        UNION ALL SELECT 'where or how it is stored', pg_catalog.concat_ws(' ', c.relam, c.reltablespace, c.relpersistence) \
        FROM both_of_them b JOIN pg_catalog.pg_class c ON c.oid = b.oid) \
    SELECT DISTINCT what FROM things GROUP BY what, how HAVING pg_catalog.count(*) <> 2 ORDER BY 1";
