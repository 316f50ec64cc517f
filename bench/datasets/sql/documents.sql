-- Documents of 20 kB. The file is read as (FORMAT csv, HEADER true).

CREATE TABLE documents (
    id       integer NOT NULL,
    document jsonb   NOT NULL
);
