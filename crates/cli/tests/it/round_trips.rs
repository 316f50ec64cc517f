//! How often a server far away is waited for, counted by a proxy that delays every answer.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Fault, Proxy, Server};
use std::time::Duration;

/// Longer than it takes a client to send what it sends together.
const DELAY: Duration = Duration::from_millis(10);

/// What a load looks at by the clock, the more often the longer it takes: what its sessions wait for, and
/// what the server is short of.
pub(crate) const BY_THE_CLOCK: [&str; 2] = ["pg_stat_get_activity(p.pid)", "pg_replication_slots"];

/// The round trips of a command for so many files, each with a table of its own.
fn flights(database: &Database, verb: &str, tables: usize) -> u64 {
    let files = Files::new();
    let server = Server::shared(15);
    let proxy = Proxy::before_server(server);
    proxy.set(Fault::Delay(DELAY));
    proxy.leave_out_of_flights(&BY_THE_CLOCK);
    let to = database.conninfo_through(&proxy);
    let mut command = howdah(verb).args(["--to", &to, "--header", "--jobs", "1"]);
    for no in 0..tables {
        let name = format!("{verb}_{tables}_{no}");
        // Some have an index and a sequence, others have neither.
        let key = if no % 2 == 0 { "serial PRIMARY KEY" } else { "int" };
        database.sql(&format!("CREATE TABLE {name} (a {key}, b text)"));
        command = command.arg(files.put(&format!("{name}.csv"), b"a,b\n1,x\n2,y\n"));
    }
    command.run(PATIENCE).expect_code(0);
    proxy.flights()
}

/// On a busy machine what is sent together may come in two parts; one table after the other would take ten
/// each.
#[test]
fn a_further_table_costs_a_plan_less_than_a_round_trip() {
    let database = Server::shared(15).database();
    let (two, many) = (flights(&database, "plan", 2), flights(&database, "plan", 20));
    assert!(many < two + 18, "{two} round trips for 2 tables, {many} for 20");
}

/// The transactions of a plan for so many tables that are not there: the statements that the server was
/// asked, but for a few.
fn asked(database: &Database, tables: usize, options: &[&str]) -> i64 {
    let files = Files::new();
    for no in 0..tables {
        files.put(&format!("made_{tables}_{no}.csv"), b"a,b\n1,x\n2,y\n");
    }
    let transactions = || -> i64 {
        // What a session has done is counted before it is gone.
        let others = "SELECT (count(*) = 0)::int FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert!(database.wait_for(others, 1, || true));
        let sql =
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
        database.value(sql).parse().unwrap()
    };
    let before = transactions();
    let pattern = files.path().join("{table}.csv");
    let plan = howdah("plan").args(["--to", &database.conninfo()]).args(options.iter().copied()).arg(pattern);
    plan.run(PATIENCE).expect_code(if options.is_empty() { 1 } else { 0 });
    transactions() - before
}

/// What is asked of tables is asked of all of them together, and nothing of one that is not there yet: it was
/// seven statements each, and a plan for a thousand took seconds.
#[test]
fn a_further_table_that_is_to_be_made_costs_a_plan_nothing() {
    let database = Server::shared(15).database();
    let (two, many) = (asked(&database, 2, &["--create"]), asked(&database, 80, &["--create"]));
    assert!(many < two + 40, "{two} transactions for 2 tables, {many} for 80");
}

/// One is named, and what there is to say of it is asked of that one: it was six statements for each that was
/// looked for at the same time.
#[test]
fn of_tables_that_are_not_there_one_is_asked_about() {
    let database = Server::shared(15).database();
    let (two, many) = (asked(&database, 2, &[]), asked(&database, 80, &[]));
    assert!(many < two + 50, "{two} transactions for 2 tables, {many} for 80");
}

/// A chunk takes three, and a fourth for the first of its table; sequences and statistics a few. It was more
/// than twenty when one table was asked for after the other.
#[test]
fn a_further_table_costs_a_load_few_round_trips() {
    let database = Server::shared(15).database();
    let (two, many) = (flights(&database, "load", 2), flights(&database, "load", 12));
    assert!(many <= two + 10 * 14, "{two} round trips for 2 tables, {many} for 12");
}

/// Long enough for a busy machine to send together what belongs together.
const FAR: Duration = Duration::from_millis(20);

/// The round trips of a load of one small file, and what it says of itself. The proxy may be a pooler for all
/// that the load knows.
fn small_load(database: &Database, name: &str) -> (u64, serde_json::Value) {
    let files = Files::new();
    let proxy = Proxy::before_server(Server::shared(15));
    proxy.set(Fault::Delay(FAR));
    proxy.leave_out_of_flights(&BY_THE_CLOCK);
    let file = files.put(name, b"a,b\n1,x\n2,y\n");
    let to = database.conninfo_through(&proxy);
    let load = howdah("load").args(["--to", &to, "--header", "--table", "t", "--json"]).arg(file);
    let told = load.run(PATIENCE).expect_code(0).stdout;
    (proxy.flights(), serde_json::from_str(&told).unwrap())
}

/// psql's `\copy` takes four. It was 69 with a ledger that is there, and 73 with a new one; now it is 42 and
/// 44, eleven of which are for the look for a pooler, partly at the same time.
#[test]
fn a_small_load_waits_for_a_server_far_away_no_more_often_than_it_must() {
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int, b text)");
    let (with_new_ledger, _) = small_load(&database, "first.csv");
    let (flights, summary) = small_load(&database, "second.csv");
    assert_eq!(database.value("SELECT count(*) FROM t"), "4");
    assert!(flights <= 47, "{flights} round trips");
    assert!(with_new_ledger <= 50, "{with_new_ledger} round trips with a new ledger");
    // Who waits is not told that it took a part of the time only: planning alone takes more than ten round
    // trips.
    let planning_seconds = summary["planning_seconds"].as_f64().unwrap();
    assert!(planning_seconds > 20.0 * FAR.as_secs_f64(), "{summary:#}");
}
