//! The corpus of messy files, loaded as a user loads them: no format option, a table made on the way.
//!
//! Each case ends in one of the ways its expectation names. Whatever the score, no case may hang, panic or
//! hold more memory than the command was given.

use crate::memory::{MEMORY_BYTES_MAX, run_and_watch};
use crate::scene::{Files, howdah};
use howdah_testkit::{Case, Database, Finished, Row, Scores, Server, corpus};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const THREADS: usize = 4;

#[test]
fn the_corpus_scores_no_less_than_before() {
    let server = Server::shared(18);
    let wanted = std::env::var("HOWDAH_CORPUS").unwrap_or_default();
    let cases = corpus().into_iter().filter(|case| case.title().contains(&wanted));
    let waiting = Mutex::new(cases.enumerate());
    let scores = Mutex::new(Scores::default());
    let most_bytes = AtomicU64::new(0);
    let work = || {
        let (database, files) = (server.database(), Files::new());
        loop {
            let Some((no, case)) = waiting.lock().unwrap().next() else { return };
            let load = Load::run(&database, &files, no, &case);
            most_bytes.fetch_max(load.peak_bytes, Relaxed);
            let wrong = load.judge(&database, &case);
            scores.lock().unwrap().count(&case.kind, &case.name, wrong);
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let most_bytes = most_bytes.into_inner();
    println!("The corpus: no load held more than {most_bytes} bytes");
    assert!(most_bytes > 0, "no load was seen to hold any memory");
    let scores = scores.into_inner().unwrap();
    scores.show("The corpus, loaded by the command without options");
    if wanted.is_empty() {
        scores.check("command");
    }
}

/// One case, loaded.
struct Load {
    table: String,
    peak_bytes: u64,
    finished: Finished,
}

impl Load {
    fn run(database: &Database, files: &Files, no: usize, case: &Case) -> Load {
        let table = format!("case_{no}");
        let file = files.put(&format!("case_{no}.csv"), &case.bytes);
        if let Some(columns) = &case.table {
            database.sql(&format!("CREATE TABLE {table} ({columns})"));
        }
        let command = howdah("load").arg(&file).args(["--to", &database.conninfo(), "--table", &table]);
        let command = if case.table.is_none() { command.arg("--create") } else { command };
        let command = if case.lenient { command.arg("--lenient") } else { command };
        let (finished, peak) = run_and_watch(&command);
        let title = case.title();
        assert!(!finished.stderr.contains("panicked"), "{title}: a panic\n{}", finished.stderr);
        assert_eq!(finished.signal, None, "{title}: ended by a signal\n{}", finished.stderr);
        assert!(peak <= MEMORY_BYTES_MAX, "{title}: held {peak} bytes");
        Load { table, peak_bytes: peak, finished }
    }

    /// What is wrong, if anything.
    fn judge(&self, database: &Database, case: &Case) -> Option<String> {
        let Finished { code, stderr, .. } = &self.finished;
        let failed = stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        let expected = case.wanted.error.as_ref().or(case.wanted.or_error.as_ref());
        if *code == Some(1) && expected.is_some_and(|words| failed.contains(words.as_str())) {
            return None;
        }
        if let Some(words) = &case.wanted.error {
            return Some(format!("a failure with the words {words:?} wanted, {code:?} got: {failed}"));
        }
        let wanted_code = if case.wanted.left_out > 0 { 3 } else { 0 };
        if *code != Some(wanted_code) {
            return Some(format!("exit code {wanted_code} wanted, {code:?} got: {failed}"));
        }
        let columns = self.columns(database);
        let rows = self.rows(database, &columns);
        case.disagreement(&rows).or_else(|| case.wrong_columns(&columns))
    }

    fn columns(&self, database: &Database) -> Vec<(String, String)> {
        let rows = database.rows(&format!(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute \
             WHERE attrelid = '{}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            self.table
        ));
        let pair = |row: Row| {
            let mut values = row.into_iter().flatten();
            (values.next().unwrap(), values.next().unwrap())
        };
        rows.into_iter().map(pair).collect()
    }

    fn rows(&self, database: &Database, columns: &[(String, String)]) -> Vec<Row> {
        // As psql prints it, but for the words of truth.
        let quoted = |(name, of): &(String, String)| {
            let cast = if of == "boolean" { "::text" } else { "" };
            format!("\"{}\"{cast}", name.replace('"', "\"\""))
        };
        let columns: Vec<String> = columns.iter().map(quoted).collect();
        database.rows(&format!("SELECT {} FROM {}", columns.join(", "), self.table))
    }
}
