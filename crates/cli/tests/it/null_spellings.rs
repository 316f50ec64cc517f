//! Files in which NULL has several spellings, and all else is as COPY can be told: read in ranges, and sent
//! with one.

use crate::auto::load;
use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::{HowdahCommand, Server};
use std::fmt::Write as _;

const ROWS: u64 = 30_000;

/// Of 64 kB chunks several. Quoted words are values, and records 20,000 and 25,000 are bad.
fn text(with_bad: bool) -> String {
    let mut text = "id,n,note\n".to_owned();
    for id in 1..=ROWS {
        let n = ["7", "NA", "", "-"][(id % 4) as usize];
        let note = ["NA", "\"NA\"", "\"a\nNA,-\"", "", "\"-\"", "\"\"", "x"][(id % 7) as usize];
        let _ = match id {
            20_000 if with_bad => writeln!(text, "{id},many,{note}"),
            25_000 if with_bad => writeln!(text, "{id},NA,x,more"),
            _ => writeln!(text, "{id},{n},{note}"),
        };
    }
    text
}

const OPTIONS: [&str; 10] =
    ["--table", "t", "--chunk-size", "64kB", "--null", "NA", "--null", "-", "--null", ""];

#[test]
fn spellings_of_null_are_null_in_every_form_that_records_are_sent_in() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    let source = files.put("a.csv", text(false).as_bytes());
    let packed = files.put("b.csv.gz", &gzip(text(false).as_bytes()));
    let wanted = "SELECT sum(hashtext(format('%s %s %s', id, n, note)) * id::numeric) FROM wanted";
    database.sql(&format!(
        "CREATE TABLE wanted AS SELECT id, CASE id % 4 WHEN 0 THEN 7 END AS n, \
         CASE id % 7 WHEN 1 THEN 'NA' WHEN 2 THEN E'a\\nNA,-' WHEN 4 THEN '-' WHEN 5 THEN '' WHEN 6 THEN 'x' END AS note \
         FROM generate_series(1, {ROWS}) id"
    ));
    let plan = howdah("plan").args(["--to", &database.conninfo(), "--create"]).args(OPTIONS).arg(&source);
    let plan = plan.run(PATIENCE).expect_code(0).stdout;
    assert!(
        plan.contains("spelling of NULL becomes \"\" on the way") && !plan.contains("one thread"),
        "{plan}"
    );
    for (source, options) in [
        (&source, &["--create", "--verify", "checksum"][..]),
        (&source, &["--encode", "binary", "--atomic"]),
        (&source, &["--encode", "csv", "--on-error", "skip"]),
        (&source, &["--encode", "csv", "--mode", "replace"]),
        (&packed, &["--encode", "text"]),
    ] {
        load(&database).args(OPTIONS).args(options).arg("--force").arg(source).run(PATIENCE).expect_code(0);
        let stored = wanted.replace("wanted", "t");
        assert_eq!(database.value(&stored), database.value(wanted), "{options:?}");
        database.sql("TRUNCATE t");
    }
}

/// Bytes move when a spelling becomes a shorter one.
#[test]
fn bad_records_are_told_where_they_stand_in_the_file() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, n int, note text)");
    let text = text(true);
    let byte = |record: &str| text.find(record).unwrap();
    let bad = [byte("20000,many"), byte("25000,NA,x,more")];
    let plain = files.put("a.csv", text.as_bytes());
    let packed = files.put("b.csv.gz", &gzip(text.as_bytes()));
    for source in [&plain, &packed] {
        let load_it = load(&database).args(OPTIONS).args(["--job-id", "j"]).arg(source);
        let stopped = load_it.clone().run(PATIENCE).expect_code(1).stderr;
        assert!(stopped.contains(&format!("record 20000, byte {}, column n", bad[0])), "{stopped}");
        let rejects = files.path().join("bad.csv");
        // The job goes on in the way that it was begun in.
        let skip = load_it.args(["--on-error", "skip", "--reject-file"]).arg(&rejects);
        skip.run(PATIENCE).expect_code(3);
        let told = database.rows("SELECT record::text, start_byte::text FROM howdah.reject ORDER BY 1");
        let wanted = [("20000", bad[0]), ("25000", bad[1])];
        assert_eq!(told, wanted.map(|(no, byte)| [Some(no.to_owned()), Some(byte.to_string())]));
        assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS - 2).to_string());
        // As in the file what the client has found, and as it was sent what the server has.
        let kept = std::fs::read_to_string(&rejects).unwrap();
        assert!(kept.ends_with("25000,NA,x,more\n"), "{kept}");
        std::fs::write(&rejects, kept.replace(",more", "")).unwrap();
        let sent = files.path().join("bad.csv.sent");
        let mended = std::fs::read_to_string(&sent).unwrap().replace("many", "");
        std::fs::write(&sent, mended).unwrap();
        for file in [&rejects, &sent] {
            let reload = load(&database).args(["--rejects", "j"]).arg(file);
            reload.run(PATIENCE).expect_code(0);
        }
        let loaded = "SELECT count(*) || ' ' || count(n) FROM t WHERE id IN (20000, 25000)";
        assert_eq!(database.value(loaded), "2 0");
        database.sql("TRUNCATE t; DROP SCHEMA howdah CASCADE");
    }
}

/// Of one column a file may hold whole numbers alone, and another one fractions.
#[test]
fn nan_is_a_number_whatever_the_other_numbers_of_its_file_are() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    let fractions = files.put("a.csv", b"k,v\n1,1.5\n2,NaN\n");
    let whole = files.put("b.csv", b"k,v\n3,1\n4,NaN\n5,nan\n");
    database.sql("CREATE TABLE f (k int, v float8)");
    for (table, options) in [("f", &[][..]), ("n", &["--create"]), ("m", &["--create"])] {
        let load = load(&database).args(["--table", table]).args(options);
        let sources = if table == "m" { vec![&whole] } else { vec![&fractions, &whole] };
        sources.into_iter().fold(load, HowdahCommand::arg).run(PATIENCE).expect_code(0);
        let stored = format!("SELECT string_agg(v::text, ' ' ORDER BY k) FROM {table} WHERE k > 2");
        assert_eq!(database.value(&stored), "1 NaN NaN", "{table}");
    }
    database.sql("CREATE TABLE i (k int, v int)");
    let told = load(&database).args(["--table", "i"]).arg(&whole).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("column v is integer") && told.contains("behind it, and NaN"), "{told}");
    load(&database)
        .args(["--table", "i", "--null", "NaN", "--null", "nan"])
        .arg(&whole)
        .run(PATIENCE)
        .expect_code(0);
    assert_eq!(database.value("SELECT count(v) FROM i"), "1");
}

/// What one month proves to be no value is none in the next.
#[test]
fn a_word_that_one_file_proves_to_be_null_is_null_in_all_of_the_table() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    let january = "k,v,note\n1,7,fine\n2,NA,all of it\n3,9,sold out\n";
    let february = "k,v,note\n4,5,NA\n5,6,as before\n6,7,half of it\n7,NA,next one\n8,8,NA\n";
    let march = "k,v,note\n9,1,NA\n";
    let [january, february, march] =
        [("a.csv", january), ("b.csv", february), ("c.csv.gz", march)].map(|(name, text)| {
            match name.ends_with(".gz") {
                true => files.put(name, &gzip(text.as_bytes())),
                false => files.put(name, text.as_bytes()),
            }
        });
    let load = load(&database).args(["--table", "t", "--create"]).args([january, february, march]);
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("\"NA\" among text is read as NULL, it may be a value"), "{told}");
    let stored = "SELECT string_agg(format('%s %L %L', k, v, note), ', ' ORDER BY k) FROM t \
        WHERE note IS NULL OR v IS NULL";
    assert_eq!(
        database.value(stored),
        "2 NULL 'all of it', 4 '5' NULL, 7 NULL 'next one', 8 '8' NULL, 9 '1' NULL"
    );
}
