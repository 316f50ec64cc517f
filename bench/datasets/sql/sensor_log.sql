-- The table of the published parallel-COPY experiment with its primary key and two more indexes.
-- The file is read as (FORMAT csv, HEADER true).

CREATE TABLE sensor_log (
    sensor_log_id   serial PRIMARY KEY,
    location        varchar   NOT NULL,
    reading         bigint    NOT NULL,
    reading_date    timestamp NOT NULL
);

CREATE INDEX sensor_log_location_index ON sensor_log (location);
CREATE INDEX sensor_log_reading_date_index ON sensor_log (reading_date);
