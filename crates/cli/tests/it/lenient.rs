//! What `--lenient` must come through: files that are wrong on purpose.

use crate::auto::load;
use crate::scene::{Files, PATIENCE, gzip};
use howdah_testkit::Server;
use std::fmt::Write as _;

#[test]
fn behind_an_end_of_data_marker_nothing_is_read_whichever_way_the_file_comes() {
    let mut text = String::new();
    for id in 0..9000 {
        if id == 1000 {
            text.push_str("\\.\n");
        }
        let _ = writeln!(text, "{id}\t\\N\ta\\tb\\\\c{}", id % 7);
    }
    let files = Files::new();
    let plain = files.put("a.txt", text.as_bytes());
    let zipped = files.put("a.txt.gz", &gzip(text.as_bytes()));
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, nothing text, note text)");
    for source in [plain.as_os_str(), zipped.as_os_str(), "-".as_ref()] {
        let command = load(&database)
            .args(["--lenient", "--force", "--quote", "none", "--escape", "\\", "--delimiter", "\t"])
            .args(["--header=false", "--table", "t", "--chunk-size", "64kB"])
            .arg(source);
        let command = if source == "-" { command.stdin(text.clone()) } else { command };
        let done = command.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) || ' ' || min(note) FROM t"), "1000 a\tb\\c0");
        let told = format!("\\. at record 1001, byte {}, of ", text.find("\\.").unwrap());
        assert!(done.stderr.contains(&told), "{}", done.stderr);
        database.sql("TRUNCATE t");
    }
}

#[test]
fn what_follows_an_end_of_data_marker_is_told_whichever_way_the_file_is_read() {
    let rows: String = (0..9000).map(|id| format!("{id}\t\\N\ta{}\n", id % 7)).collect();
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, nothing text, note text)");
    let ways: [&[&str]; 4] = [
        &["--format", "text"],
        &["--quote", "none", "--escape", "\\", "--delimiter", "\t", "--header=false"],
        &["--quote", "none", "--escape", "\\", "--delimiter", "\t", "--header=false", "--lenient"],
        &[
            "--quote",
            "none",
            "--escape",
            "\\",
            "--delimiter",
            "\t",
            "--header=false",
            "--types",
            "id=integer:1.234",
        ],
    ];
    for (no, way) in ways.into_iter().enumerate() {
        for (behind, is_told) in
            [("", false), ("\n", false), ("1\t2\t3\n", true), ("\n\n1\t2\t3\n4\t5\t6\n", true)]
        {
            let text = format!("{rows}\\.\n{behind}");
            let plain = files.put(&format!("{no}.txt"), text.as_bytes());
            let zipped = files.put(&format!("{no}.txt.gz"), &gzip(text.as_bytes()));
            for source in [plain, zipped] {
                let command =
                    load(&database).args(way).args(["--force", "--table", "t", "--chunk-size", "64kB"]);
                let done = command.arg(&source).run(PATIENCE).expect_code(0);
                assert_eq!(database.value("SELECT count(*) || ' ' || sum(id) FROM t"), "9000 40495500");
                let told = format!("\\. at record 9001, byte {}, of ", rows.len());
                assert_eq!(
                    done.stderr.contains(&told),
                    is_told,
                    "{way:?} {behind:?} {source:?}: {}",
                    done.stderr
                );
                assert_eq!(done.stderr.contains("ends the data"), is_told, "{}", done.stderr);
                database.sql("TRUNCATE t");
            }
        }
    }
}

/// COPY compares with NULL before it undoes backslashes.
#[test]
fn values_of_copy_text_that_are_spelled_like_null_stay_values_where_records_are_mended() {
    let (files, database) = (Files::new(), Server::shared(18).database());
    database.sql("CREATE TABLE t (a text, b text, c text)");
    database.sql("CREATE TABLE copied (LIKE t)");
    let text = b"1\t\\NA\tNA\n2\t\\N\n\\NA\tb\0\tc\n\\NA\td\0\n";
    let mended = "1\t\\NA\tNA\n2\t\\N\tNA\n\\NA\tb\u{fffd}\tc\n\\NA\td\u{fffd}\tNA\n";
    database.copy_in("COPY copied FROM STDIN (NULL 'NA')", mended.as_bytes().to_vec()).unwrap();
    let rows = |table| database.value(&format!("SELECT string_agg(t::text, ' ') FROM {table} t"));
    assert_eq!(rows("copied"), "(1,NA,) (2,N,) (NA,b\u{fffd},c) (NA,d\u{fffd},)");
    for source in [files.put("t.txt", text), files.put("t.txt.gz", &gzip(text))] {
        let options =
            ["--quote", "none", "--escape", "\\", "--delimiter", "\t", "--header=false", "--null", "NA"];
        let command =
            load(&database).args(options).args(["--lenient", "--nul", "replace", "--force", "--table", "t"]);
        command.arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(rows("t"), rows("copied"));
        database.sql("TRUNCATE t");
    }
}

#[test]
fn a_line_that_old_servers_take_for_the_end_of_the_data_loses_nothing() {
    let files = Files::new();
    let sources = [
        ("two", files.put("two.csv", b"a,b\n1,2\n\\.\n3,4\n5,6\n7,8\n")),
        ("one", files.put("one.csv", b"name\nfir\n\\.\noak\nelm\nyew\n")),
    ];
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE two (a text, b int); CREATE TABLE one (name text)");
    for (table, source) in &sources {
        let command = || load(&database).args(["--header", "--delimiter", ","]).arg(source);
        let refused = command().run(PATIENCE).expect_code(1);
        assert!(refused.stderr.contains("record 2, "), "{}", refused.stderr);
        assert!(refused.stderr.contains("--lenient"), "{}", refused.stderr);
        database.sql(&format!("TRUNCATE {table}"));
        command().args(["--lenient", "--force"]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(&format!("SELECT count(*) FROM {table}")), "5");
    }
}

#[test]
fn records_that_mending_makes_longer_stay_within_the_budget() {
    let files = Files::new();
    let columns = |count: usize| (0..count).map(|no| format!("c{no}")).collect::<Vec<_>>();
    let table = |count| {
        let full = format!("{}\n", vec!["1"; count].join(","));
        format!("{}\n{}{}", columns(count).join(","), full.repeat(400), "1\n".repeat(20_000))
    };
    let (narrow, wide) = (table(100), table(1000));
    let sources = [files.put("a.csv", narrow.as_bytes()), files.put("a.csv.gz", &gzip(narrow.as_bytes()))];
    let too_wide = files.put("b.csv", wide.as_bytes());
    let database = Server::shared(18).database();
    for count in [100, 1000] {
        let columns = columns(count).join(" int, ");
        database.sql(&format!("CREATE TABLE t{count} ({columns} int)"));
    }
    let told = ["--lenient", "--delimiter", ",", "--header", "--memory", "64MB"];
    let command = |source| load(&database).args(told).arg(source);
    for source in &sources {
        // Ten times what a chunk's buffer holds.
        let command = command(source).args(["--table", "t100", "--chunk-size", "64kB"]);
        command.run(PATIENCE).expect_code(0);
    }
    assert_eq!(
        database.value("SELECT count(*) || ' ' || sum(c0) || ' ' || sum(c99) FROM t100"),
        "40800 40800 800"
    );
    let refused = command(&too_wide).args(["--table", "t1000"]).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("a smaller --chunk-size"), "{}", refused.stderr);
}

/// What cannot be mended counts with `--on-error skip`, and does not without.
#[test]
fn a_run_that_goes_on_counts_what_cannot_be_mended_as_the_first_one_did() {
    let mut text = "id,n\n1,1\n2,3,4,5\n".to_owned();
    for id in 3..20_000 {
        let _ = writeln!(text, "{id},{}", if id == 19_000 { "-1".to_owned() } else { id.to_string() });
    }
    let files = Files::new();
    let source = files.put("a.csv.gz", &gzip(text.as_bytes()));
    let skip = ["--on-error", "skip"];
    for (first, then, missing) in [(&[][..], &skip[..], "without"), (&skip, &[], "with")] {
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE t (id int, n int CHECK (n > 0))");
        let command = |options: &[&str]| {
            let command =
                load(&database).args(["--lenient", "--table", "t", "--chunk-size", "64kB", "--jobs", "1"]);
            command.args(options.iter().copied()).arg(&source).run(PATIENCE)
        };
        let bears_none = [first, &["--max-errors", "1"]].concat();
        let stopped = command(if first.is_empty() { first } else { &bears_none });
        stopped.expect_code(1);
        assert_ne!(database.value("SELECT count(*) FROM t"), "0");
        let refused = command(then).expect_code(2).stderr;
        assert!(refused.contains(&format!("has stored rows {missing} --on-error skip")), "{refused}");
        database.sql("ALTER TABLE t DROP CONSTRAINT t_n_check");
        command(first).expect_code(3);
        assert_eq!(database.value("SELECT count(*) || ' ' || count(DISTINCT id) FROM t"), "19998 19998");
    }
}
