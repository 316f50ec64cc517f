//! Clean random tables, made messy in one way each, must come back clean.
//!
//! `make mess` tries 20,000 files, as the nightly run does; a plain test run some hundreds. A file that does
//! not come back is named by its seed.

use crate::whole_way::load;
use howdah_testkit::{Mess, Scores, asked};

/// Of all files, so many percent come back at least.
const PERCENT_MIN: u64 = 98;

#[test]
fn a_clean_table_comes_back_from_generated_mess() {
    let (files, seed) = (asked("HOWDAH_MESS_FILES", 400), asked("HOWDAH_MESS_SEED", 0));
    let mut scores = Scores::default();
    for seed in seed..seed + files {
        let mess = Mess::new(seed);
        scores.count(&format!("{:?}", mess.kind), &format!("seed {seed}"), wrong(&mess));
    }
    scores.show("Generated mess, read by the library alone");
    let (passed, all) = scores.total();
    assert!(passed * 100 >= all * PERCENT_MIN, "{passed} of {all} files came back");
}

/// What is wrong, if anything.
fn wrong(mess: &Mess) -> Option<String> {
    let loaded = match load(&mess.bytes, mess.lenient) {
        Ok(loaded) => loaded,
        Err(error) => return Some(format!("{error}; written with {}", mess.about)),
    };
    let names = loaded.finding.names.clone();
    let what = if mess.names.clone().unwrap_or_default() != names {
        format!("names {:?} wanted, {names:?} got", mess.names)
    } else if mess.rows != loaded.rows {
        let at = mess.rows.iter().zip(&loaded.rows).take_while(|(one, other)| one == other).count();
        format!("row {at}: {:?} wanted, {:?} got", mess.rows.get(at), loaded.rows.get(at))
    } else if mess.left_out != loaded.left_out {
        format!("{} left out, {} wanted", loaded.left_out, mess.left_out)
    } else {
        return None;
    };
    Some(format!("{what}; written with {}; found {}", mess.about, loaded.found()))
}
