//! Types of columns: the same whatever the order and the cuts, and true on a real server.
//!
//! Columns are made of random values of one or several sorts, nasty ones among them. What is inferred for
//! them is put to PostgreSQL: every value must be one of the type, and after a sample the type must give it
//! back byte for byte.

use fastrand::Rng;
use howdah_model::Reading;
use howdah_testkit::{Database, Server};
use howdah_transcode::infer::{ColumnState, Inferred, Watch, misfit, read};

/// One value of a sort of which columns are made.
type Sort = fn(&mut Rng) -> String;

const SORTS: [Sort; 39] = [
    |rng| rng.choice(["True", "False"]).unwrap().to_owned(),
    |rng| format!("{}T{:02}:07:01.{:03}Z", date(rng, "-", [0, 1, 2]), rng.u32(0..24), rng.u32(0..1000)),
    |rng| format!("{} {:02}:59", date(rng, "/", [0, 1, 2]), rng.u32(0..24)),
    |rng| format!("{} {:02}:07:01+00:00", date(rng, "-", [0, 1, 2]), rng.u32(0..24)),
    |rng| format!("{:02}:{:02}", rng.u32(0..24), rng.u32(0..60)),
    |rng| format!("{:02}:00:07.{:02}", rng.u32(0..24), rng.u32(0..100)),
    |rng| rng.i32(-50..50).to_string(),
    |rng| rng.i32(..).to_string(),
    |rng| rng.i64(..).to_string(),
    |rng| format!("{:.2}", f64::from(rng.i32(-99_999..99_999)) / 100.0),
    |rng| format!("{}.{}", rng.u32(0..2000), rng.u32(0..2000)),
    |rng| format!("{:e}", rng.f64() * 10f64.powi(rng.i32(-320..308))),
    |rng| format!("{:e}", rng.f64() * 10f64.powi(rng.i32(-320..308))).replace('.', ","),
    |rng| format!("{}", rng.f64()),
    |rng| format!("{:05}", rng.u32(0..99_999)),
    |rng| rng.choice(["true", "false"]).unwrap().to_owned(),
    |rng| rng.choice(["Y", "N", "yes", "no", "t", "f", "TRUE", "False", "on", "OFF"]).unwrap().to_owned(),
    |rng| date(rng, "-", [0, 1, 2]),
    |rng| date(rng, rng.clone().choice(["/", "-", "."]).unwrap(), [0, 1, 2]),
    |rng| date(rng, "/", [2, 1, 0]),
    |rng| date(rng, rng.clone().choice(["/", "-", "."]).unwrap(), [1, 2, 0]),
    |rng| format!("{:02}/{:02}/{:02}", rng.u32(0..33), rng.u32(0..14), rng.u32(0..100)),
    |rng| format!("{} {}", date(rng, "-", [0, 1, 2]), time(rng)),
    |rng| format!("{}T{}{}", date(rng, "-", [0, 1, 2]), time(rng), zone(rng)),
    |rng| format!("{} {}{}", date(rng, "/", [2, 1, 0]), time(rng), zone(rng)),
    |rng| format!("{} {}{}", date(rng, "-", [0, 1, 2]), time(rng), zone(rng)),
    |rng| format!("{}-{}-{:02}", rng.u32(0..33), month(rng), rng.u32(0..100)),
    |rng| format!("{} {}, {:04} {}", month(rng), rng.u32(1..31), rng.u32(1..9999), time(rng)),
    time,
    |rng| format!("{:02}:{:02}{}", rng.u32(0..25), rng.u32(0..61), rng.choice(["", " AM", "pm"]).unwrap()),
    |rng| uuid(rng),
    |rng| uuid(rng).to_uppercase(),
    json,
    |rng| format!("{}.{}.{}.{}", rng.u8(..), rng.u8(..), rng.u8(..), rng.u8(..)),
    |rng| format!("{}.0.{}.{}/{}", rng.u8(..), rng.u8(..), rng.u8(..), rng.u8(0..34)),
    |rng| {
        format!(
            "{:x}:{:x}::{:x}{}",
            rng.u16(..),
            rng.u16(..),
            rng.u16(..),
            rng.choice(["", "/64", "/129"]).unwrap()
        )
    },
    grouped,
    |rng| format!("{}{}", rng.choice(["$", "-$", "€ ", "("]).unwrap(), grouped(rng)),
    |rng| nasty(rng),
];

fn date(rng: &mut Rng, separator: &str, order: [usize; 3]) -> String {
    let year = if rng.u8(..) == 0 { rng.u32(0..10_000) } else { rng.u32(1960..2040) };
    let parts = [format!("{year:04}"), format!("{:02}", rng.u32(1..13)), format!("{:02}", rng.u32(1..32))];
    order.map(|at| parts[at].clone()).join(separator)
}

fn time(rng: &mut Rng) -> String {
    let mut text = format!("{:02}:{:02}:{:02}", rng.u32(0..24), rng.u32(0..60), rng.u32(0..60));
    if rng.u8(0..4) == 0 {
        text += &format!(".{}", rng.u32(0..1_000_000));
    }
    text
}

fn zone(rng: &mut Rng) -> String {
    match rng.u8(0..5) {
        0 => "Z".to_owned(),
        1 => "+00".to_owned(),
        2 => format!("-{:02}:{:02}", rng.u32(0..15), rng.u32(0..60)),
        3 => format!(" +{:02}{:02}", rng.u32(0..15), rng.u32(0..60)),
        _ => " UTC".to_owned(),
    }
}

fn month(rng: &mut Rng) -> String {
    rng.choice(["Jan", "FEB", "march", "Sept", "October", "dec", "Mon"]).unwrap().to_owned()
}

fn uuid(rng: &mut Rng) -> String {
    let hex = format!("{:032x}", rng.u128(..));
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn json(rng: &mut Rng) -> String {
    match rng.u8(0..8) {
        0 => "{}".to_owned(),
        1 => format!("[{}e{}, -0.0]", rng.i32(..), rng.i32(-999..999)),
        2 => format!("{{\"a\": \"\\u{:04x}\", \"b\": null}}", rng.u16(..)),
        3 => format!("[\"{}\"]", nasty(rng)),
        4 => format!("{{{}}}", rng.u8(..)),
        5 => format!("[\"\\ud8{:02x}\\udc{:02x}\"]", rng.u8(..), rng.u8(..)),
        _ => format!("{{\"k{}\": [true, {{\"x\": {}}}]}}", rng.u8(..), rng.i32(..)),
    }
}

fn grouped(rng: &mut Rng) -> String {
    let (group, decimal) =
        *rng.clone().choice(&[(",", "."), (".", ","), (" ", ","), ("'", "."), ("", ",")]).unwrap();
    let mut text = rng.u32(0..1000).to_string();
    for _ in 0..rng.u8(0..3) {
        text += &format!("{group}{:03}", rng.u32(0..1000));
    }
    match rng.u8(0..4) {
        0 => text,
        1 => format!("{text}{decimal}{:03}", rng.u32(0..1000)),
        _ => format!("{text}{decimal}{:02}", rng.u32(0..100)),
    }
}

/// Short strings of what numbers, dates and words are made of, so that some are nearly right.
fn nasty(rng: &mut Rng) -> String {
    const SPECIAL: [&str; 30] = [
        "",
        " ",
        "-",
        "+",
        ".",
        "NaN",
        "Infinity",
        "-Infinity",
        "null",
        "NULL",
        "-0",
        "-0.0",
        "0x1F",
        "1_000",
        "1e400",
        "1e-400",
        "24:00:00",
        "infinity",
        "epoch",
        "now",
        "today",
        "23:59:60",
        "0000-01-01",
        "2023-02-29",
        "\\N",
        "'",
        "\u{a0}12",
        "١٢",
        "9223372036854775808",
        "\u{2212}5",
    ];
    if rng.bool() {
        return rng.choice(SPECIAL).unwrap().to_owned();
    }
    let alphabet: Vec<char> = "0123456789019.,:-/ +eEtfTZ%$(){}[]\"".chars().collect();
    (0..rng.usize(1..12)).map(|_| *rng.choice(&alphabet).unwrap()).collect()
}

/// A column: mostly of one sort, sometimes with a second, blanks around values, or a surprise.
fn column(rng: &mut Rng) -> Vec<String> {
    let sort = *rng.choice(&SORTS).unwrap();
    let other = if rng.u8(0..3) == 0 { *rng.choice(&SORTS).unwrap() } else { sort };
    let padded = rng.u8(0..12) == 0;
    let mut values = Vec::new();
    for _ in 0..rng.usize(1..40) {
        let value = if rng.u8(0..4) == 0 { other(rng) } else { sort(rng) };
        values.push(if padded && rng.bool() { format!(" {value}\t") } else { value });
    }
    if rng.u8(0..8) == 0 {
        let at = rng.usize(..=values.len());
        values.insert(at, nasty(rng));
    }
    values
}

fn state<'a>(values: impl IntoIterator<Item = &'a String>) -> ColumnState {
    let mut state = ColumnState::default();
    values.into_iter().for_each(|value| state.observe(value.as_bytes()));
    state
}

#[test]
fn parts_joined_in_any_order_are_the_whole() {
    let mut rng = Rng::with_seed(7);
    for _ in 0..20_000 {
        let values = column(&mut rng);
        let whole = state(&values);
        let mut parts: Vec<ColumnState> = values.chunks(rng.usize(1..=values.len())).map(state).collect();
        // Joining a part twice, and one without values, changes nothing.
        parts.push(parts[0].clone());
        parts.push(ColumnState::default());
        rng.shuffle(&mut parts);
        let joined = parts.iter().fold(ColumnState::default(), |mut sum, part| {
            sum.join(part);
            sum
        });
        assert_eq!(joined, whole, "{values:?}");
        let mut shuffled = values.clone();
        rng.shuffle(&mut shuffled);
        assert_eq!(state(&shuffled), whole, "{values:?}");
    }
}

#[test]
fn a_late_surprise_gives_the_type_that_a_full_scan_gives() {
    let mut rng = Rng::with_seed(11);
    let mut surprises = 0;
    for _ in 0..1_000 {
        // A table of some columns, each with a surprise behind its sample or not.
        for _ in 0..8 {
            let mut values = column(&mut rng);
            let sample = rng.usize(0..=values.len());
            values.push(if rng.bool() { nasty(&mut rng) } else { rng.choice(SORTS).unwrap()(&mut rng) });
            let mut known = state(&values[..sample]);
            let chosen = known.finish(false);
            for chunk in values[sample..].chunks(rng.usize(1..10)) {
                let mut watch = Watch::new(&chosen);
                chunk.iter().for_each(|value| watch.observe(value.as_bytes()));
                known.join(watch.state());
            }
            let scanned = state(&values).finish(false);
            assert_eq!(known.finish(false).type_name, scanned.type_name, "{sample} of {values:?}");
            surprises += usize::from(chosen.type_name != scanned.type_name);
            if chosen.settled {
                assert_eq!(scanned.type_name, "text", "{sample} of {values:?}");
            }
        }
    }
    assert!(surprises > 1_000, "{surprises} surprises");
}

#[test]
fn broken_bytes_are_text_and_nothing_panics() {
    let mut rng = Rng::with_seed(13);
    for _ in 0..100_000 {
        let bytes: Vec<u8> = (0..rng.usize(0..30)).map(|_| rng.u8(..)).collect();
        let mut state = ColumnState::default();
        state.observe(&bytes);
        let inferred = state.finish(true);
        if std::str::from_utf8(&bytes).is_err() {
            assert_eq!(inferred.type_name, "text", "{bytes:?}");
        }
    }
}

/// A column and the type found for it.
struct Claim {
    values: Vec<String>,
    inferred: Inferred,
    complete: bool,
}

impl Claim {
    fn literals(&self) -> String {
        let literals = self.values.iter().map(|value| {
            let mut out = Vec::new();
            match &self.inferred.reading {
                Some(reading) => assert!(read(reading, value.as_bytes(), &mut out), "{value:?} {reading:?}"),
                None => out.extend_from_slice(value.as_bytes()),
            }
            format!("('{}')", String::from_utf8(out).unwrap().replace('\'', "''"))
        });
        literals.collect::<Vec<_>>().join(",")
    }

    /// Counts the values that do not come back from the type; fails if one is not of the type.
    fn sql(&self) -> String {
        let type_name = &self.inferred.type_name;
        let lost = match self.inferred.text_sql(&format!("x::{type_name}")) {
            Some(text) if !self.complete => format!("{text} IS DISTINCT FROM x"),
            text => {
                assert!(self.complete, "{text:?}");
                format!("x::{type_name} IS NULL")
            }
        };
        format!("(SELECT count(*) FROM (VALUES {}) v(x) WHERE {lost})", self.literals())
    }
}

/// Puts all claims to the server, many in one statement; the one that is wrong is named.
fn check(database: &Database, claims: &[&Claim], settings: &str) {
    for batch in claims.chunks(100) {
        let sums: Vec<String> = batch.iter().map(|claim| claim.sql()).collect();
        let counted = database.try_rows(&format!("{settings}; SELECT {}", sums.join(" + ")));
        if counted.is_ok_and(|rows| rows[0][0].as_deref() == Some("0")) {
            continue;
        }
        for claim in batch {
            let counted = database.try_rows(&format!("{settings}; SELECT {}", claim.sql()));
            let wrong = match counted {
                Ok(rows) if rows[0][0].as_deref() == Some("0") => continue,
                Ok(_) => "changed".to_owned(),
                Err(error) => format!("{:?}", error.as_db_error()),
            };
            panic!("{:?} {wrong}: {:?} with {settings}", claim.inferred, claim.values);
        }
        panic!("no single claim is wrong");
    }
}

#[test]
fn every_type_is_one_to_which_the_server_casts_all_values() {
    let mut rng = Rng::with_seed(17);
    let mut claims = Vec::new();
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    while claims.len() < 12_000 {
        let values = column(&mut rng);
        if values.iter().any(|value| value.contains('\0')) {
            continue;
        }
        for complete in [true, false] {
            let inferred = state(&values).finish(complete);
            if inferred.type_name != "text" {
                let name = inferred.type_name.split('(').next().unwrap().to_owned();
                *seen.entry(format!("{name} {}", inferred.reading.is_some())).or_default() += 1;
                claims.push(Claim { values: values.clone(), inferred, complete });
            }
        }
    }
    println!("{seen:?}");
    for name in [
        "boolean",
        "int",
        "bigint",
        "numeric",
        "double precision",
        "date",
        "timestamp",
        "timestamptz",
        "time",
    ] {
        assert!(seen.get(&format!("{name} false")).is_some_and(|count| *count > 50), "{name}: {seen:?}");
    }
    for name in ["uuid", "jsonb", "inet"] {
        assert!(seen.get(&format!("{name} false")).is_some_and(|count| *count > 30), "{name}: {seen:?}");
    }
    let claims: Vec<&Claim> = claims.iter().collect();
    for major in howdah_testkit::MAJORS {
        let database = Server::shared(major).database();
        check(&database, &claims, "SET DateStyle = 'ISO, MDY'; SET TimeZone = 'America/St_Johns'");
    }
    let complete: Vec<&Claim> = claims.iter().copied().filter(|claim| claim.complete).collect();
    let database = Server::shared(15).database();
    check(&database, &complete, "SET DateStyle = 'SQL, DMY'");
    check(&database, &complete, "SET DateStyle = 'ISO, YMD'");
}

#[test]
fn a_misfit_is_refused_by_the_server() {
    const TYPES: [&str; 16] = [
        "smallint",
        "integer",
        "bigint",
        "numeric",
        "real",
        "double precision",
        "boolean",
        "date",
        "timestamp without time zone",
        "timestamp(3) with time zone",
        "time",
        "uuid",
        "inet",
        "cidr",
        "json",
        "jsonb",
    ];
    let mut rng = Rng::with_seed(29);
    let database = Server::shared(15).database();
    // EXCEPTION blocks: each claim is tried, and only those that the server takes are said.
    let tried = |claims: &[(String, &str)]| {
        let blocks = claims.iter().enumerate().map(|(no, (values, type_name))| {
            format!(
                "BEGIN PERFORM count(x::{type_name}) FROM (VALUES {values}) v(x); \
                 INSERT INTO taken VALUES ({no}); EXCEPTION WHEN data_exception THEN NULL; END;"
            )
        });
        let code = format!("DO $code$ BEGIN {} END $code$", blocks.collect::<String>());
        database.rows(&format!("CREATE TEMP TABLE taken (no int); {code}; SELECT no FROM taken"))
    };
    assert_eq!(tried(&[("('x')".to_owned(), "integer"), ("('1')".to_owned(), "integer")]).len(), 1);
    let (mut claims, mut count) = (Vec::new(), 0);
    while count < 3_000 {
        let values = column(&mut rng);
        let type_name = *rng.choice(&TYPES).unwrap();
        let known = state(&values);
        if misfit(&known, type_name).is_some() {
            let inferred = Inferred { reading: None, ..known.finish(true) };
            claims.push((Claim { values, inferred, complete: true }.literals(), type_name));
            count += 1;
        }
        if claims.len() == 100 {
            if let Some(row) = tried(&claims).first() {
                let (values, type_name) = &claims[row[0].as_ref().unwrap().parse::<usize>().unwrap()];
                panic!("{type_name} takes {values}");
            }
            claims.clear();
        }
    }
    let fits = |values: &[&str], type_name: &str| {
        misfit(&state(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>()), type_name)
            .is_none()
    };
    assert!(
        fits(&["1", "2"], "int") && fits(&["007"], "int") && fits(&["x"], "int") && fits(&["1,234"], "int")
    );
    assert!(
        !fits(&["1.5"], "int") && !fits(&["70000"], "smallint") && !fits(&["2024-01-31"], "numeric(3,1)")
    );
    assert!(fits(&["1706695445"], "timestamp") && fits(&["20240131"], "timestamp"));
    assert!(!fits(&["2024011215"], "timestamp") && !fits(&["0", "1706695445"], "timestamp"));
    assert!(fits(&["31/01/2024"], "date") && fits(&["1"], "boolean") && !fits(&["2"], "boolean"));
}

/// The check itself: it is worth no more than what it notices.
#[test]
fn a_wrong_claim_is_noticed() {
    let database = Server::shared(15).database();
    let wrong = |values: &[&str], like: &[&str], complete: bool| {
        let of = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let claim = Claim { values: of(values), inferred: state(&of(like)).finish(complete), complete };
        let checked = std::panic::catch_unwind(|| check(&database, &[&claim], "SET DateStyle = ISO"));
        assert!(checked.is_err(), "{values:?} as {:?}", claim.inferred);
    };
    wrong(&["1", "x"], &["1"], true);
    wrong(&["2147483648"], &["1"], true);
    wrong(&["2023-02-29"], &["2024-02-29"], true);
    wrong(&["1", "007"], &["1"], false);
    wrong(&["1.5"], &["1.50"], false);
    wrong(&["2024-01-31T10:00:00Z"], &["2024-01-31 10:00:00+00"], false);
}

#[test]
fn a_value_without_a_reading_means_the_same_in_every_datestyle() {
    let mut rng = Rng::with_seed(19);
    let mut values = Vec::new();
    for _ in 0..3_000 {
        let value = rng.choice(SORTS).unwrap()(&mut rng);
        let inferred = state([&value]).finish(true);
        if inferred.reading.is_none()
            && (inferred.type_name == "date" || inferred.type_name.starts_with("timestamp"))
        {
            values.push(format!("('{value}'::timestamptz)"));
        }
    }
    assert!(values.len() > 200);
    let database = Server::shared(15).database();
    let of = |order: &str| {
        let list = values.join(",");
        database.value(&format!(
            "SET DateStyle = 'ISO, {order}'; SELECT md5(string_agg(x::text, ';')) FROM (VALUES {list}) v(x)"
        ))
    };
    assert_eq!((of("DMY"), of("YMD")), (of("MDY"), of("MDY")));
}

#[test]
fn reserved_words_are_those_of_every_server() {
    for major in howdah_testkit::MAJORS {
        let database = Server::shared(major).database();
        let sql = "SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')";
        let words: Vec<String> =
            database.rows(sql).into_iter().map(|mut row| row.remove(0).unwrap()).collect();
        for (word, name) in words.iter().zip(howdah_transcode::infer::snake(&words)) {
            assert_eq!(name, format!("{word}_"), "PostgreSQL {major}");
        }
    }
}

#[test]
fn readings_move_digits_and_lose_none() {
    let mut rng = Rng::with_seed(23);
    let spelled = Reading::Number {
        group: Some('.'),
        decimal: ',',
        currency: true,
        parentheses: true,
        minus_behind: true,
        percent: false,
        sign: None,
    };
    for _ in 0..10_000 {
        let digits = |rng: &mut Rng, count: usize| {
            (0..count).map(|_| char::from(b'0' + rng.u8(0..10))).collect::<String>()
        };
        let whole: Vec<String> = (0..rng.usize(0..30)).map(|_| digits(&mut rng, 3)).collect();
        let (first, fraction) = (rng.u32(1..1000).to_string(), digits(&mut rng, 40));
        let negative = rng.bool();
        let value =
            format!("€ {first}{}{},{fraction}", if whole.is_empty() { "" } else { "." }, whole.join("."));
        let value = match (negative, rng.bool()) {
            (true, true) => format!("({value})"),
            (true, false) => format!("{value}-"),
            (false, _) => value,
        };
        let mut out = Vec::new();
        assert!(read(&spelled, value.as_bytes(), &mut out), "{value}");
        let expected = format!("{}{first}{}.{fraction}", if negative { "-" } else { "" }, whole.concat());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
