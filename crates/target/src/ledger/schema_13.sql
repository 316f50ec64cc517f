ALTER TABLE @schema@.file ADD COLUMN real_location text;
COMMENT ON COLUMN @schema@.file.real_location IS 'Where the links in its path lead; null if there are none';
UPDATE @schema@.file f SET real_location = p.file ->> 'real_location'::pg_catalog.text
    FROM @schema@.job j, pg_catalog.jsonb_path_query(j.plan, '$.files[*]') WITH ORDINALITY AS p (file, number)
    WHERE f.job_id = j.job_id AND f.file_no = p.number - 1 AND p.file ->> 'real_location'::pg_catalog.text IS NOT NULL;
