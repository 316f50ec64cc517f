//! Any text as a job file: no panic, and what is understood becomes a job or a usage error.
#![no_main]

use clap::Parser;
use howdah_cli::job_file;
use howdah_cli::options::{Command, Options};
use howdah_cli::settings::Settings;
use howdah_cli::units;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = (units::bytes("--x", text), units::milliseconds("--x", text), units::byte("--x", text));
    let options = Options::try_parse_from(["howdah", "load"]).expect("the shortest command");
    let Command::Load(mut options) = options.command else { return };
    if job_file::read_text(text, &mut options).is_ok() {
        let _ = Settings::resolve(*options);
    }
});
