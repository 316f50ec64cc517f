//! Any text as a location or a pattern: no panic, and a URL that is shown has lost its password and its
//! signature.
#![no_main]

use howdah_source::outside::{location, matches};
use howdah_source::shown_url;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = location(text);
    let (pattern, name) = text.split_once('\n').unwrap_or((text, "a/b.csv"));
    let _ = matches(pattern, name);
    let clean: String = text.chars().filter(char::is_ascii_alphabetic).collect();
    let url = format!("https://u:s3cr3tpassword@h/{clean}?x={clean}&X-Amz-Signature=f00dfeedcafe");
    let shown = shown_url(&url).expect("an URL");
    assert!(!shown.contains("s3cr3tpassword") && !shown.contains("f00dfeedcafe"), "{shown}");
});
