//! Other people who write into the table while it is loaded: rows of their own come, change and go, and rows that were there
//! before change.
//!
//! Each of their transactions does the same to the model, so that this stays exact whenever one of them is cut off.

use super::mode::Arrival;
use super::scenario::Scenario;
use super::shape::Shape;
use super::stage::Stage;
use fastrand::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Their rows have ids from here on, which neither rows from before nor rows of files have.
const FIRST_ID: u64 = super::mode::OLD_ROWS + 1;
/// Rows that nobody refers to, whose values no constraint is about, and which no file has.
const OLD: &str = "id BETWEEN 200 AND 300";

/// In one of four loads, where the load takes nobody's rows away, and what they write cannot be told from its own by triggers.
pub(super) fn draw(scenario: &Scenario, random: &mut Rng) -> bool {
    let Scenario { shape, mode, .. } = scenario;
    let stay = match mode.arrival {
        Arrival::Append | Arrival::InsertNew { .. } => true,
        Arrival::Merge { deletes, .. } => !deletes,
        Arrival::Truncate { .. } | Arrival::Replace | Arrival::Make { .. } => false,
    };
    stay && *shape != Shape::Watched && random.u8(..4) == 0
}

/// Writes until this is no longer wanted. No lock of a session that has died unseen is waited for.
pub(super) fn write(stage: &Stage, enough: &AtomicBool, random: &mut Rng) {
    let mut next = FIRST_ID;
    while !enough.load(Ordering::Relaxed) {
        for place in stage.scenario.places {
            let change = draw_change(random, next);
            let sql = format!(
                "SET statement_timeout = '2s'; SET search_path TO {place}; \
                 DO $$DECLARE here bigint; there bigint; BEGIN {}; GET DIAGNOSTICS here = ROW_COUNT; \
                     {}; GET DIAGNOSTICS there = ROW_COUNT; \
                     IF here <> there THEN RAISE 'some of these rows are out of reach'; END IF; END$$",
                change.replace("{table}", "t"),
                change.replace("{table}", "wanted")
            );
            // There may be no server, or no such column.
            let _ = stage.database.try_sql(&sql);
        }
        next = (next + 3).min(super::data::FIRST_ID);
        std::thread::sleep(Duration::from_millis(random.u64(5..50)));
    }
}

/// The first three ids from `next` on are free.
fn draw_change(random: &mut Rng, next: u64) -> String {
    let most = super::data::FIRST_ID - 1;
    let some = random.u64(FIRST_ID..=next);
    let upto = |count: u64| (some + count).min(most);
    match random.u8(..6) {
        0 => format!("DELETE FROM {{table}} WHERE id BETWEEN {some} AND {}", upto(4)),
        1 => format!("UPDATE {{table}} SET score = score - 1 WHERE id BETWEEN {some} AND {}", upto(9)),
        2 => format!("UPDATE {{table}} SET amount = amount + 0.01 WHERE {OLD}"),
        _ => format!(
            "INSERT INTO {{table}} (id, part, score, amount, day, note) \
             SELECT i, i % 256, -i, i / 1000.0, '2023-06-01', 'others' FROM generate_series({next}, {}) i",
            (next + 2).min(most)
        ),
    }
}

#[test]
fn others_write_no_row_that_files_have() {
    let bound = super::data::FIRST_ID;
    for seed in 0..1000 {
        let change = draw_change(&mut Rng::with_seed(seed), bound - seed % 30);
        let last = change.split_once(" AND ").map(|(_, last)| last.parse::<u64>().unwrap());
        assert!(last.is_none_or(|last| last < bound), "{change}");
    }
}
