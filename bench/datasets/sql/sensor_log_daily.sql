-- The table of sensor_log.sql in daily partitions. A unique key holds the column by which a table is partitioned.
-- The file is read as (FORMAT csv, HEADER true).

CREATE TABLE sensor_log_daily (
    sensor_log_id   bigint    NOT NULL,
    location        varchar   NOT NULL,
    reading         bigint    NOT NULL,
    reading_date    timestamp NOT NULL,
    PRIMARY KEY (sensor_log_id, reading_date)
) PARTITION BY RANGE (reading_date);

CREATE INDEX sensor_log_daily_location_index ON sensor_log_daily (location);
CREATE INDEX sensor_log_daily_reading_date_index ON sensor_log_daily (reading_date);

DO $$
BEGIN
    FOR day IN 1..31 LOOP
        EXECUTE format(
            'CREATE TABLE sensor_log_daily_%s PARTITION OF sensor_log_daily FOR VALUES FROM (%L) TO (%L)',
            lpad(day::text, 2, '0'), date '2014-12-31' + day, date '2015-01-01' + day);
    END LOOP;
END
$$;
