//! Exports of other systems, and of COPY: what they write with backslashes is stored as it was meant.

use crate::auto::load;
use crate::scene::{Files, PATIENCE};
use howdah_testkit::Server;

#[test]
fn parts_of_an_export_are_read_alike() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, note text)");
    let cases: [&[&str]; 3] = [
        &["1|Anna|\\N\n2|Bob\\|by|C:\\\\a\n", "3|C:\\\\temp|x\n4|Dora|y\n", "5|Emil|z\n6|Fay|\\\\\n"],
        &[
            "1,\"say \\\"hi\\\"\",\"a, b\"\n2,\"Bob\",\"C:\\\\a\"\n",
            "3,\"C:\\\\temp\",\"x\"\n4,\"Dora\",\"y\"\n",
            "5,\"Emil\",\"z\"\n6,\"Fay\",\"\\\\\"\n",
        ],
        &["1\tAnna\t\\N\n2\tBob\tC:\\\\a\n", "3\tC:\\\\temp\tx\n4\tDora\ty\n", "5\tEmil\tz\n6\tFay\t\\\\\n"],
    ];
    for (no, parts) in cases.iter().enumerate() {
        for (part, text) in parts.iter().enumerate() {
            files.put(&format!("{no}_part_{part}"), text.as_bytes());
        }
        let pattern = files.path().join(format!("{no}_part_*"));
        load(&database).args(["--table", "t"]).arg(pattern).run(PATIENCE).expect_code(0);
        let stored = "SELECT string_agg(id || name || note, ' ' ORDER BY id) FROM t WHERE id IN (2, 3, 6)";
        let bob = ["Bob|by", "Bob", "Bob"][no];
        assert_eq!(database.value(stored), format!("2{bob}C:\\a 3C:\\tempx 6Fay\\"), "{no}");
        database.sql("TRUNCATE t");
    }
    // What a file shows of itself counts more.
    files.put("other_0", b"1|Anna|\\N\n2|Bob\\|by|C:\\\\a\n");
    files.put("other_1", b"3|C:\\data\\\\x|x\n4|Dora|y\n");
    let pattern = files.path().join("other_*");
    load(&database).args(["--table", "t"]).arg(pattern).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT name FROM t WHERE id = 3"), "C:\\data\\\\x");
}

/// Rows of tabs, a day in each; `odd` stands for the row with this number.
fn days(rows: usize, at: usize, odd: &str) -> String {
    let row = |no: usize| match no == at {
        true => format!("{no}\t{odd}\n"),
        false => format!("{no}\t2024-01-{:02}\tnote of the day {no:022}\n", no % 28 + 1),
    };
    (0..rows).map(row).collect()
}

#[test]
fn escapes_that_come_late_are_seen() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, day date, note text)");
    let odd = "\\N\tC:\\\\data and line\\none";
    let small = files.put("small.tsv", days(6000, 1500, odd).as_bytes());
    let ways = [&["--table", "t"][..], &["--table", "t", "--evolve", "widen"], &["--create"]];
    for options in ways {
        let command = load(&database).args(options.iter().copied()).arg("--force").arg(&small);
        let loaded = command.run(PATIENCE).expect_code(0).stderr;
        let table = if options.len() == 1 { "small" } else { "t" };
        let row = database.value(&format!("SELECT to_jsonb({table}) FROM {table} LIMIT 1 OFFSET 1500"));
        assert!(row.contains(r#""C:\\data and line\none""#) && row.contains("null"), "{row} {loaded}");
    }
    // Of a longer file nobody has looked at all.
    let long = files.put("long.tsv", days(30_000, 9000, odd).as_bytes());
    for options in ways {
        let command = load(&database).args(options.iter().copied()).arg("--force").arg(&long);
        let refused = command.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("record 9001") && refused.contains("--format text"), "{refused}");
    }
    let odd = "2024-01-01\tC:\\\\data and line\\none";
    let words = files.put("words.tsv", days(30_000, 9000, odd).as_bytes());
    let told =
        load(&database).args(["--table", "t", "--force"]).arg(&words).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("record 9001 of") && told.contains("--format text"), "{told}");
    let paths = files.put("paths.tsv", days(30_000, 9000, &odd.replace("\\\\data", "\\data")).as_bytes());
    let told = load(&database).args(["--table", "t"]).arg(&paths).run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("--format text"), "{told}");
}

/// The sample has backslashes that COPY would take for its own, and others that it would not: later ones
/// alone prove nothing.
#[test]
fn paths_that_the_sample_has_are_not_said_to_be_escapes_further_on() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, day date, note text)");
    let head = days(400, 7, "2024-01-01\tC:\\data and D:\\pictures");
    let rest = days(30_000, 9000, "2024-01-01\tC:\\\\data and D:\\nested");
    let source = files.put("paths.tsv", (head + &rest).as_bytes());
    let command = load(&database).args(["--table", "t", "--chunk-size", "64kB"]).arg(&source);
    let told = command.run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("--format text"), "{told}");
}

/// Behind the sample, in a pipe: what quotes stand around is a value, and what has none is COPY's NULL.
#[test]
fn copys_null_in_quotes_is_a_value_that_widens_its_column() {
    let file = |odd: &str| {
        let row =
            |no: usize| if no == 49_000 { format!("{no},{odd}\n") } else { format!("{no},{}\n", no % 9) };
        let rows: String = (0..50_000).map(row).collect();
        format!("id,n\n{rows}").into_bytes()
    };
    let database = Server::shared(15).database();
    let piped = |odd: &str| {
        let command = load(&database).args(["--table", "t", "--create", "--force"]).arg("-");
        command.stdin(file(odd)).run(PATIENCE)
    };
    piped("\"\\N\"").expect_code(0);
    let found = database.value(
        "SELECT min(pg_typeof(n)::text) || ' ' || min(n) FILTER (WHERE id = 49000) || ' ' || count(n) FROM t",
    );
    assert_eq!(found, "text \\N 50000");
    database.sql("DROP TABLE t");
    let refused = piped("\\N").expect_code(1).stderr;
    assert!(refused.contains("record 49001") && refused.contains("the field holds \\N"), "{refused}");
}

#[test]
fn letters_of_dos_are_refused_and_not_stored_as_control_characters() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text)");
    let source = files.put("dos.csv", b"id,name\n1,M\x81ller\n2,B\x84r\n");
    let refused = load(&database).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("0x..") && refused.contains("iconv -f CP850"), "{refused}");
    assert!(refused.contains("--encoding settles it"), "{refused}");
    let mac = files.put("mac.csv", b"id,name\n1,M\x9fller\n2,B\x8ar\n");
    load(&database).args(["--table", "t", "--encoding", "macintosh"]).arg(&mac).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(name, ' ' ORDER BY id) FROM t"), "Müller Bär");
}

#[test]
fn a_file_of_lines_keeps_its_first_one() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (line text)");
    let lines = "=====\nhello world\nsecond, line\n| x |\n| y |\n=====\nthe end (1)\n";
    let source = files.put("lines.txt", lines.as_bytes());
    load(&database).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(line || E'\\n', '') FROM t"), lines);
}

/// As OUTFILE of MySQL writes it.
#[test]
fn nul_that_copy_text_spells_is_treated_as_nul() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, note text)");
    let source = files.put("t.tsv", b"1\tan\\0na\t\\N\n2\tC:\\\\00\tx\n3\tbo\\x00b\t\\000\n");
    let load = || load(&database).args(["--table", "t", "--force"]).arg(&source);
    let refused = load().run(PATIENCE).expect_code(1).stderr;
    assert!(
        refused.contains("record 1,") && refused.contains("NUL") && refused.contains("hint: "),
        "{refused}"
    );
    let stored = "SELECT string_agg(name || '-' || coalesce(note, 'null'), ' ' ORDER BY id) FROM t";
    for (options, expected) in [
        (&["--nul", "strip"][..], "anna-null C:\\00-x bob-"),
        (&["--nul", "replace"], "an\u{fffd}na-null C:\\00-x bo\u{fffd}b-\u{fffd}"),
        (&["--lenient"], "anna-null C:\\00-x bob-"),
    ] {
        load().args(options.iter().copied()).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(stored), expected, "{options:?}");
        database.sql("TRUNCATE t");
    }
    let told = load().args(["--format", "text"]).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("--nul strip"), "{told}");
}

/// Hive puts 0x02 and 0x03 between the elements of a field.
#[test]
fn control_characters_of_the_sample_are_told_for_no_quote() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, list text)");
    let rows: String = (0..40).map(|no| format!("{no}\x01say \"hi\x01a\x02b\x03c\n")).collect();
    let source = files.put("t.txt", rows.as_bytes());
    let load = |options: &[&str]| {
        load(&database).args(["--table", "t", "--quote", "none"]).args(options.iter().copied()).arg(&source)
    };
    load(&[]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) || min(list) || min(name) FROM t"), "40a\x02b\x03csay \"hi");
}

#[test]
fn other_signs_and_points_than_the_samples_are_not_taken_for_the_same() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, pay numeric); CREATE TABLE p (id int, qty numeric, amt numeric)");
    for (usual, odd) in [("$5.10", "€5.00"), ("12%", "0.5")] {
        let row = |no: usize| format!("{no},{}\n", if no == 9000 { odd } else { usual });
        let source = files
            .put("t.csv", ("id,pay\n".to_owned() + &(0..40_000).map(row).collect::<String>()).as_bytes());
        let refused = load(&database)
            .args(["--table", "t", "--force"])
            .arg(&source)
            .run(PATIENCE)
            .expect_code(1)
            .stderr;
        assert!(refused.contains("record 9001"), "{refused}");
        database.sql("TRUNCATE t");
    }
    let source = files.put("p.csv", b"id;qty;amt\n1;1.234;1.234,50\n2;2.345;2,25\n");
    let told = load(&database).args(["--table", "p"]).arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("--types qty=numeric:1.234,56 settles it"), "{told}");
}
