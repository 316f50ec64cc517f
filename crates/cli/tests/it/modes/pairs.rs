//! Two loads of different jobs that meet in one table, or in a partition and its table: what is there behind
//! both is what one of the two orders would have left, and one that was refused has changed nothing.

use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, Finished, HowdahCommand, Running, Server, side_by_side};
use std::path::Path;
use std::time::{Duration, Instant};

const ROWS: u64 = 2000;
/// Where the ids of the rows begin that were there before, and of each job.
const FIRST_IDS: [u64; 3] = [1, 1_000_000, 2_000_000];
const DRAWN: usize = 9;
const SIDE_BY_SIDE: usize = 4;
/// Far longer than the second load takes, if it does not wait.
const SOON: Duration = Duration::from_secs(20);

/// What a load does with the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Append,
    Atomic,
    Truncate,
    Freeze,
    Replace,
    Merge,
    InsertNew,
    Delete,
    DeleteAtomic,
}

const WAYS: [Way; 9] = [
    Way::Append,
    Way::Atomic,
    Way::Truncate,
    Way::Freeze,
    Way::Replace,
    Way::Merge,
    Way::InsertNew,
    Way::Delete,
    Way::DeleteAtomic,
];

impl Way {
    fn options(self) -> &'static [&'static str] {
        match self {
            Way::Append => &["--indexes", "rebuild"],
            Way::Atomic => &["--atomic"],
            Way::Truncate => &["--mode", "truncate"],
            Way::Freeze => &["--mode", "truncate", "--freeze"],
            Way::Replace => &["--mode", "replace"],
            Way::Merge => &["--mode", "merge", "--key", "id"],
            Way::InsertNew => &["--mode", "insert-new", "--key", "id"],
            Way::Delete => &["--mode", "merge", "--key", "id", "--delete-missing"],
            Way::DeleteAtomic => &["--mode", "merge", "--key", "id", "--delete-missing", "--atomic"],
        }
    }

    /// Only its own rows are there behind it.
    fn takes(self) -> bool {
        use Way::{Delete, DeleteAtomic, Freeze, Replace, Truncate};
        matches!(self, Truncate | Freeze | Replace | Delete | DeleteAtomic)
    }
}

/// Two loads, into which tables, and where the first one stands still until the other has ended or waits.
#[derive(Debug, Clone, Copy)]
struct Pair {
    ways: [Way; 2],
    tables: [&'static str; 2],
    /// Behind its first chunk; or before the step that takes rows.
    is_late: bool,
}

const TABLES: [[&str; 2]; 3] = [["t", "t"], ["t_leaf", "t"], ["t", "t_leaf"]];

fn made(tables: [&str; 2]) -> Database {
    let database = Server::shared(15).database();
    let columns = "id bigint PRIMARY KEY, part integer, amount numeric, note text";
    match tables {
        ["t", "t"] => database.sql(&format!("CREATE TABLE t ({columns})")),
        _ => database.sql(&format!(
            "CREATE TABLE t ({columns}) PARTITION BY RANGE (id); \
             CREATE TABLE t_leaf PARTITION OF t FOR VALUES FROM (MINVALUE) TO (MAXVALUE)"
        )),
    }
    database
}

/// The job `first` waits there while `held` has a row.
fn hold_first(database: &Database, is_late: bool) {
    let (table, when) = match is_late {
        true => ("step", "NEW.name IN ('delete', 'replace')"),
        false => ("chunk", "(SELECT count(*) FROM howdah.chunk WHERE job_id = 'first') >= 1"),
    };
    database.sql(&format!(
        "CREATE TABLE held AS SELECT 1; CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             WHILE NEW.job_id = 'first' AND {when} AND EXISTS (SELECT FROM public.held) LOOP PERFORM pg_sleep(0.01); END LOOP; \
             RETURN NEW; END $$; \
         CREATE TRIGGER hold BEFORE INSERT ON howdah.{table} FOR EACH ROW EXECUTE FUNCTION hold()"
    ));
}

fn load(database: &Database, job: &str, table: &str, source: &Path) -> HowdahCommand {
    let to = database.conninfo();
    howdah("load")
        .args(["--format", "csv", "--header", "--chunk-size", "64kB", "--jobs", "1", "--lock-timeout", "1s"])
        .args(["--to", &to, "--table", table, "--job-id", job])
        .arg(source)
}

/// `None`: not all rows of that origin are there, nor none.
fn held_rows(database: &Database) -> Option<[bool; 3]> {
    let mut held = [false; 3];
    for (held, first) in held.iter_mut().zip(FIRST_IDS) {
        let rows = database
            .value(&format!("SELECT count(*) FROM t WHERE id BETWEEN {first} AND {first} + {ROWS} - 1"));
        *held = match rows.parse::<u64>() {
            Ok(0) => false,
            Ok(ROWS) => true,
            _ => return None,
        };
    }
    Some(held)
}

/// What the loads that have ended well leave, in this order.
fn in_order(pair: Pair, order: &[usize]) -> [bool; 3] {
    let mut held = [true, false, false];
    for &no in order {
        if pair.ways[no].takes() {
            held = [false; 3];
        }
        held[1 + no] = true;
    }
    held
}

fn ended_or_waits(running: &mut Running) {
    let began = Instant::now();
    while running.is_running() && !running.stderr_so_far().contains(" yet: ") && began.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What is wrong behind the two.
fn meet(pair: Pair) -> Option<String> {
    let database = made(pair.tables);
    let files = Files::new();
    let [before, first, second] =
        [0, 1, 2].map(|no| files.put(&format!("{no}.csv"), &csv(no as u64, FIRST_IDS[no], ROWS)));
    load(&database, "before", "t", &before).run(PATIENCE).expect_code(0);
    hold_first(&database, pair.is_late);
    let [first, second] = [("first", 0, &first), ("second", 1, &second)]
        .map(|(job, no, source)| load(&database, job, pair.tables[no], source).args(pair.ways[no].options()));
    let mut first = first.spawn();
    let sleeps =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    database.wait_for(sleeps, 1, || first.is_running());
    let mut second = second.spawn();
    ended_or_waits(&mut second);
    database.sql("DELETE FROM held");
    let ended: [Finished; 2] = [first, second].map(|load| load.wait(PATIENCE));
    let well: Vec<usize> = (0..2).filter(|no| ended[*no].code == Some(0)).collect();
    let mut other = well.clone();
    other.reverse();
    let held = held_rows(&database);
    let fits = [well.clone(), other].iter().any(|order| held == Some(in_order(pair, order)));
    let told = || ended.iter().map(|ended| ended.stderr.as_str()).collect::<Vec<_>>().join("---\n");
    (!fits).then(|| format!("{pair:?}: ended well: {well:?}, held: {held:?}\n{}", told()))
}

/// All in which something is at stake.
fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for tables in TABLES {
        for ways in WAYS.into_iter().flat_map(|first| WAYS.map(|second| [first, second])) {
            if ways.iter().any(|way| way.takes()) {
                pairs.push(Pair { ways, tables, is_late: false });
            }
            if matches!(ways[0], Way::Delete | Way::DeleteAtomic | Way::Replace) {
                pairs.push(Pair { ways, tables, is_late: true });
            }
        }
    }
    pairs
}

/// Those that have once gone wrong, and some more.
#[test]
fn two_loads_leave_what_one_order_of_them_would() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut others = pairs();
    fastrand::Rng::with_seed(seed).shuffle(&mut others);
    let known = [
        ([Way::Delete, Way::Delete], ["t", "t"], true),
        ([Way::Append, Way::Delete], ["t_leaf", "t"], false),
        ([Way::Truncate, Way::DeleteAtomic], ["t", "t"], false),
    ];
    let known = known.map(|(ways, tables, is_late)| Pair { ways, tables, is_late });
    let drawn: Vec<Pair> = known.into_iter().chain(others.into_iter().take(DRAWN)).collect();
    for some in drawn.chunks(SIDE_BY_SIDE) {
        side_by_side(some, |pair| {
            let wrong = meet(*pair);
            assert!(wrong.is_none(), "seed {seed}: {}", wrong.unwrap_or_default());
        });
    }
}
