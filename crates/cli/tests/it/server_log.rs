//! What a load leaves in the server's log, where its owner looks for errors: of a load that goes well,
//! nothing.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{MAJORS, Server, ServerOptions, side_by_side};

#[test]
fn a_load_that_goes_well_leaves_no_error_in_the_log() {
    side_by_side(MAJORS, |major| {
        let server = Server::private(major, &ServerOptions::default());
        let database = server.database();
        let before = server.log().len();
        database.sql(
            "CREATE ROLE loader LOGIN; CREATE TABLE t (id integer PRIMARY KEY, word text); CREATE TABLE u (LIKE t INCLUDING ALL); \
             ALTER TABLE u OWNER TO loader; GRANT USAGE, CREATE ON SCHEMA public TO loader; GRANT SELECT, INSERT ON t TO loader; \
             CREATE SCHEMA howdah AUTHORIZATION loader",
        );
        let files = Files::new();
        let put = |from: u32| {
            let rows: String = (from..from + 1000).map(|id| format!("{id},word {id}\n")).collect();
            files.put(&format!("{from}.csv"), format!("id,word\n{rows}").as_bytes())
        };
        let run = |verb: &str, to: &str, options: &[&str]| {
            howdah(verb).args(["--to", to]).args(options).run(PATIENCE).expect_code(0)
        };
        let (owner, loader) = (database.conninfo(), format!("{} user=loader", database.conninfo()));
        let first = put(0);
        let first = first.to_str().unwrap();
        run("plan", &loader, &["--table", "t", first]);
        run("load", &loader, &["--table", "t", first]);
        run("load", &loader, &["--table", "u", "--indexes", "rebuild", "--force", first]);
        run("load", &owner, &["--table", "made", "--create", "--ledger", "another", first]);
        for (from, options) in [
            (1000, &["--table", "t", "--on-error", "skip"][..]),
            (2000, &["--table", "t", "--mode", "insert-new", "--key", "id"]),
            (3000, &["--table", "u", "--mode", "merge", "--key", "id"]),
            (4000, &["--table", "u", "--atomic"]),
            (5000, &["--table", "u", "--mode", "replace"]),
            (6000, &["--table", "u", "--mode", "truncate", "--verify", "checksum"]),
        ] {
            run("load", &loader, &[options, &[put(from).to_str().unwrap()]].concat());
        }
        run("check", &loader, &["--table", "u", put(7000).to_str().unwrap()]);
        run("status", &loader, &[]);
        run("restore", &loader, &["--all"]);
        let log = server.log();
        let lines = log[before..].lines();
        let errors: Vec<&str> =
            lines.filter(|line| line.contains("ERROR:") || line.contains("FATAL:")).collect();
        assert!(errors.is_empty(), "PostgreSQL {major}: {errors:#?}");
    });
}
