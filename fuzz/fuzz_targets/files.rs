//! Any text as a service file, a password file, an AWS profile file or a store's error answer: no panic, and
//! a code is a word; what a password file is made to say of a login, it says.
#![no_main]

use howdah_source::outside::{error_code, profile_settings};
use howdah_target::session::outside::{password_line, service_file};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = service_file(text, "a");
    let _ = profile_settings(text, "profile a");
    let code = error_code(text).unwrap_or_default();
    assert!(code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    text.lines().for_each(|line| drop(password_line(line, "h")));
    if !text.contains(['\n', '\r']) {
        let escaped = text.replace('\\', "\\\\").replace(':', "\\:");
        assert_eq!(password_line(&format!("h:p:*:u:{escaped}"), "h").as_deref(), Some(text));
    }
});
