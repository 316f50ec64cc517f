//! The `howdah` command; everything is in the library.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(howdah_cli::run(std::env::args_os(), &[]))
}
