//! Other people who write into the table while it is loaded: rows of their own come, change and go, and rows
//! that were there before change.
//!
//! Each of their transactions does the same to the model, so that this stays exact whenever one of them is
//! cut off. Where rows come by their key, others insert some of these keys at the same moment.

use super::mode::Arrival;
use super::scenario::Scenario;
use super::shape::Shape;
use super::stage::Stage;
use fastrand::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Rows of their own have ids from here on, which neither rows from before nor rows of files have.
const FIRST_ID: u64 = super::mode::OLD_ROWS + 1;
/// Rows that nobody refers to, whose values no constraint is about, and which no file has.
const OLD: &str = "id BETWEEN 200 AND 300";

/// In one of four loads, and in two where rows come by their key, where the load takes nobody's rows away,
/// and what they write cannot be told from its own by triggers.
pub(super) fn draw(scenario: &Scenario, random: &mut Rng) -> bool {
    let Scenario { shape, mode, .. } = scenario;
    let stay = match mode.arrival {
        Arrival::Append | Arrival::InsertNew { .. } => true,
        Arrival::Merge { deletes, .. } => !deletes,
        Arrival::Truncate { .. } | Arrival::Replace | Arrival::Make { .. } => false,
    };
    let of_four = if mode.arrival.key().is_some() { 2 } else { 1 };
    stay && *shape != Shape::Watched && random.u8(..4) < of_four
}

/// Writes until this is no longer wanted. How many transactions went through. No lock of a session that has
/// died unseen is waited for.
pub(super) fn write(stage: &Stage, enough: &AtomicBool, random: &mut Rng) -> u64 {
    let (mut next, mut written) = (FIRST_ID, 0);
    while !enough.load(Ordering::Relaxed) {
        for place in stage.scenario.places {
            let [to_table, to_model] = draw_change(&stage.scenario, random, next);
            let sql = format!(
                "SET statement_timeout = '2s'; SET search_path TO {place}; \
                 DO $$DECLARE here bigint; there bigint; BEGIN {to_table}; GET DIAGNOSTICS here = ROW_COUNT; \
                     {to_model}; GET DIAGNOSTICS there = ROW_COUNT; \
                     IF here <> there THEN RAISE 'some of these rows are out of reach'; END IF; END$$"
            );
            // There may be no server, no such column, or a row of this key.
            written += u64::from(stage.database.try_sql(&sql).is_ok());
        }
        next = if next + 3 < super::data::FIRST_ID { next + 3 } else { FIRST_ID };
        std::thread::sleep(Duration::from_millis(random.u64(5..50)));
    }
    written
}

/// What is done to the table, and to the model.
fn draw_change(scenario: &Scenario, random: &mut Rng, next: u64) -> [String; 2] {
    if scenario.mode.arrival.key().is_some() && random.u8(..8) < 3 {
        return of_a_files_key(scenario, random);
    }
    let change = draw_own(random, next);
    ["t", "wanted"].map(|table| change.replace("{table}", table))
}

/// A change of their own rows, or of those from before.
fn draw_own(random: &mut Rng, next: u64) -> String {
    let most = super::data::FIRST_ID - 1;
    let some = random.u64(FIRST_ID..=next);
    let upto = |count: u64| (some + count).min(most);
    match random.u8(..6) {
        0 => format!("DELETE FROM {{table}} WHERE id BETWEEN {some} AND {}", upto(4)),
        1 => format!("UPDATE {{table}} SET score = score - 1 WHERE id BETWEEN {some} AND {}", upto(9)),
        2 => format!("UPDATE {{table}} SET amount = amount + 0.01 WHERE {OLD}"),
        _ => format!(
            "INSERT INTO {{table}} (id, part, score, amount, day, note) \
             SELECT i, i % 256, -i, i / 1000.0, '2023-06-01', 'others' FROM generate_series({next}, {}) i \
             WHERE NOT EXISTS (SELECT FROM {{table}} old WHERE old.id = i)",
            (next + 2).min(most)
        ),
    }
}

/// A row with the key of a record, which has none before the load: a merge makes it what the record says,
/// `insert-new` leaves it. Where the load comes first, it is refused, and nothing is changed.
fn of_a_files_key(scenario: &Scenario, random: &mut Rng) -> [String; 2] {
    let id = super::data::FIRST_ID + random.u64(..scenario.rows);
    let which = format!("id = {id} AND id % 3 <> 0");
    let stays = matches!(scenario.mode.arrival, Arrival::InsertNew { .. });
    [
        format!(
            "INSERT INTO t (id, part, score, amount, day, note) \
             SELECT id, part, score - 1, amount, day, 'others' FROM wanted WHERE {which}"
        ),
        format!(
            "UPDATE wanted SET {} WHERE {which}",
            if stays { "score = score - 1, note = 'others'" } else { "id = id" }
        ),
    ]
}

#[test]
fn others_write_no_row_that_files_have() {
    let bound = super::data::FIRST_ID;
    for seed in 0..1000 {
        let change = draw_own(&mut Rng::with_seed(seed), bound - seed % 30);
        let last = change.split_once(" AND ").map(|(_, last)| last.parse::<u64>().unwrap());
        assert!(last.is_none_or(|last| last < bound), "{change}");
    }
}
