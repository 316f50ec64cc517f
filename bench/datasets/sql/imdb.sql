-- The staging tables of the published loading experiment: text only, no keys, no indexes.
-- Columns are those of the files, in their order. The files are read as
-- (FORMAT csv, HEADER true, DELIMITER E'\t'), which keeps \N as two characters, as the experiment did.

CREATE SCHEMA IF NOT EXISTS staging;

CREATE TABLE staging.title (
    "titleId"          text,
    ordering           text,
    title              text,
    region             text,
    language           text,
    types              text,
    attributes         text,
    "isOriginalTitle"  text
);

CREATE TABLE staging.title_basics (
    tconst             text,
    "titleType"        text,
    "primaryTitle"     text,
    "originalTitle"    text,
    "isAdult"          text,
    "startYear"        text,
    "endYear"          text,
    "runtimeMinutes"   text,
    genres             text
);

CREATE TABLE staging.title_crew (
    tconst             text,
    directors          text,
    writers            text
);

CREATE TABLE staging.title_episode (
    tconst             text,
    "parentTconst"     text,
    "seasonNumber"     text,
    "episodeNumber"    text
);

CREATE TABLE staging.title_principals (
    tconst             text,
    ordering           text,
    nconst             text,
    category           text,
    job                text,
    characters         text
);

CREATE TABLE staging.title_ratings (
    tconst             text,
    "averageRating"    text,
    "numVotes"         text
);

CREATE TABLE staging.name_basics (
    nconst             text,
    "primaryName"      text,
    "birthYear"        text,
    "deathYear"        text,
    "primaryProfession" text,
    "knownForTitles"   text
);
