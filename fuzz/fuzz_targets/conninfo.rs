//! Any text as a conninfo string or URL: no panic, and a password is only where one was understood.
#![no_main]

use howdah_target::session::{Conninfo, outside};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let understood = outside::conninfo(text);
    assert!(understood || !Conninfo::holds_password(text));
    if let Ok(Some(info)) = Conninfo::resolve(Some(text)) {
        assert!(understood && !info.display().is_empty());
    }
});
