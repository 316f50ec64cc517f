//! The howdah command.
fn main() {}
