//! Any text as the plan of a job in a ledger: no panic, the same when it is written and read again, and what
//! is made of its parts holds nothing against rows.
#![no_main]

use howdah_model::{Format, Plan};
use howdah_target::session::outside::kept_plan;
use howdah_transcode::copy_options;
use howdah_transcode::encode::{Rewriter, Unquoter};
use howdah_transcode::route::{Router, Sent};
use libfuzzer_sys::fuzz_target;

const ROWS: &[u8] = b"1\t2\t2024-02-29\n\\N\tx\t\n";

fuzz_target!(|text: &str| {
    if let Some(kept) = kept_plan(text) {
        let kept = kept.expect("what was read can be written");
        let again = kept_plan(&kept).expect("what was written can be read").expect("and written again");
        assert_eq!(kept, again);
    }
    let Ok(plan) = serde_json::from_str::<Plan>(text) else { return };
    let written = serde_json::to_string(&plan).expect("what was read can be written");
    let again: Plan = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(written, serde_json::to_string(&again).expect("and written again"));
    for table in &plan.tables {
        let _ = copy_options::check(&table.format);
        let _ = Unquoter::new(&table.format);
        let _ = Rewriter::new(&table.format, &[]);
        let _ = table.dialect.as_ref().and_then(|dialect| dialect.to_format());
        let Some(router) = table.route.as_ref().and_then(Router::new) else { continue };
        let Some(reader) = Router::reader(&Format::text(), None, "UTC") else { continue };
        let mut out = vec![0; 4096];
        let _ = router.lay_out(Sent::Records(ROWS, &reader), &mut [&mut out]);
    }
});
